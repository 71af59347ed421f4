"""Metrics are written as Prometheus reads them."""

from paceline.apimachinery.metrics import Counter, Gauge, Histogram, MetricRegistry, ReadGauge


def written(*sources):
    registry = MetricRegistry()
    registry.put("all", *sources)
    return registry.write().decode()


def test_a_counter_without_labels_is_there_before_anything_was_counted():
    assert written(Counter("a_total", "Things.")) == "# HELP a_total Things.\n# TYPE a_total counter\na_total 0\n"


def test_a_gauge_has_one_line_for_each_combination_of_label_values():
    jobs = Gauge("jobs", "Jobs.", ("kind", "phase"))
    jobs.add("A", "Running")
    jobs.add("A", "Running", amount=2)
    jobs.add("B", "Failed", amount=-1)
    assert written(jobs).splitlines()[2:] == [
        'jobs{kind="A",phase="Running"} 3',
        'jobs{kind="B",phase="Failed"} -1',
    ]


def test_a_histogram_counts_what_is_at_most_its_bounds():
    seconds = Histogram("s_seconds", "Seconds.", ("kind",), buckets=(0.5, 2.0))
    for value in (0.5, 0.6, 3.0):
        seconds.observe(value, "A")
    assert written(seconds).splitlines()[2:] == [
        's_seconds_bucket{kind="A",le="0.5"} 1',
        's_seconds_bucket{kind="A",le="2"} 2',
        's_seconds_bucket{kind="A",le="+Inf"} 3',
        's_seconds_sum{kind="A"} 4.1',
        's_seconds_count{kind="A"} 3',
    ]


def test_samples_of_one_name_from_several_sources_stand_together():
    sources = [ReadGauge(name="depth", help="Depth.", read=lambda: 1, labels=(("name", name),)) for name in "ab"]
    other = Counter("else_total", "Other.")
    text = written(sources[0], other, sources[1])
    assert text.count("# TYPE depth gauge") == 1
    assert 'depth{name="a"} 1\ndepth{name="b"} 1\n' in text


def test_letters_that_would_end_a_label_are_escaped():
    build = ReadGauge(name="info", help="Two\nlines.", read=lambda: 1, labels=(("version", 'a"b\\c\nd'),))
    assert written(build).splitlines() == [
        "# HELP info Two\\nlines.",
        "# TYPE info gauge",
        'info{version="a\\"b\\\\c\\nd"} 1',
    ]


def test_a_group_that_is_replaced_shows_nothing_of_its_past():
    registry = MetricRegistry()
    registry.put("term", Counter("a_total", "A."))
    registry.put("term")
    assert registry.write() == b""


def test_samples_with_the_same_labels_are_added_up():
    registry = MetricRegistry()
    for count in (2, 3):
        jobs, seconds = Gauge("jobs", "Jobs.", ("kind",)), Histogram("wait_seconds", "Wait.", buckets=(1.0,))
        jobs.set("MPIJob", value=count)
        seconds.observe(0.5 * count)
        registry.add("controllers", jobs, seconds)

    lines = registry.write().decode().splitlines()

    assert [line for line in lines if not line.startswith("#")] == [
        'jobs{kind="MPIJob"} 5',
        'wait_seconds_bucket{le="1"} 1',
        'wait_seconds_bucket{le="+Inf"} 2',
        "wait_seconds_sum 2.5",
        "wait_seconds_count 2",
    ]
