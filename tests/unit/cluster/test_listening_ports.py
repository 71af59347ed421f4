"""What this machine's network says."""

import socket

from paceline.host.listening_sockets import listening_ports


def test_a_port_is_in_use_while_somebody_listens_on_it():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert port in listening_ports()
    assert port not in listening_ports()
