"""Trains nothing, but logs a loss as a training does: five steps, and five more once a file says so."""

import sys
import time
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

FOLDER, GO = Path(sys.argv[1]), Path(sys.argv[2])


def write(steps):
    for step in steps:
        loss = Summary.Value(tag="loss", simple_value=1 / (step + 1))
        writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[loss])))
    writer.flush()


writer = EventFileWriter(str(FOLDER))
write(range(5))
print("five steps", flush=True)
while not GO.exists():
    time.sleep(0.1)
write(range(5, 10))
writer.close()
