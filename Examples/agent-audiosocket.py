#!/usr/bin/env python3
"""A voice agent for AudioSocket in a few lines: says two notes, then gives back what it hears.

    python3 Examples/agent-audiosocket.py 9092
    media-tool agent try --to audiosocket:127.0.0.1:9092
"""
import asyncio, math, struct, sys

SOUND, KEY, HANG_UP = 0x10, 0x03, 0x00          # 16 bits, little endian, 8000 Hz


def tone(hz, seconds):
    return b"".join(struct.pack("<h", int(8000 * math.sin(i * hz * math.tau / 8000))) for i in range(int(8000 * seconds)))


async def call(reader, writer):
    greeting = tone(440, 0.5) + tone(660, 0.5)
    writer.write(b"".join(struct.pack(">BH", SOUND, 320) + greeting[i:i + 320] for i in range(0, len(greeting), 320)))
    try:
        while True:
            kind, length = struct.unpack(">BH", await reader.readexactly(3))
            content = await reader.readexactly(length)
            if kind == SOUND:
                writer.write(struct.pack(">BH", SOUND, length) + content)
                await writer.drain()
            elif kind == KEY:
                print("key", content.decode(), flush=True)
            elif kind == HANG_UP:
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main():
    async with await asyncio.start_server(call, "127.0.0.1", int(sys.argv[1])) as server:
        print("listening", flush=True)
        await server.serve_forever()


asyncio.run(main())
