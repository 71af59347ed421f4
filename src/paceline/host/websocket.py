"""A WebSocket of a client: uvicorn's protocol, imported with the first of them."""

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class WebSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, in which an error response completes the handshake, so that it is not logged as an error."""

    async def send(self, message: Any) -> None:
        """Send a message; the end of an error response completes the handshake."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    def shutdown(self) -> None:
        """Close the connection; one that the client is closing already is only hung up."""
        if self.handshake_complete and not self.close_sent and self.conn.state.name != "OPEN":
            self.stop_keepalive()
            self.transport.close()
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        self.app_state["release"]()
        super().connection_lost(exc)
