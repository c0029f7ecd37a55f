"""Passes each connection on port 2375 to the engine's socket, byte for byte."""

from __future__ import annotations

import asyncio


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    engine_reader, engine_writer = await asyncio.open_unix_connection("/engine.sock")
    await asyncio.gather(copy(reader, engine_writer), copy(engine_reader, writer), return_exceptions=True)
    for each in (writer, engine_writer):
        each.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "0.0.0.0", 2375)  # noqa: S104 - published on loopback alone
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
