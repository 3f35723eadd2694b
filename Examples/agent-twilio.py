#!/usr/bin/env python3
"""A voice agent for Twilio's Media Streams: speaks ten notes, and stops as soon as the caller speaks. Needs python3-websockets.

    python3 Examples/agent-twilio.py 8765
    media-tool agent try --to ws://127.0.0.1:8765/ws
"""
import asyncio, base64, json, math, sys
import websockets


def ulaw(sample):
    """A sample of 16 bits as one of 8 (ITU-T G.711)."""
    sign, magnitude = (0x80, -sample) if sample < 0 else (0, sample)
    magnitude = min(magnitude, 32635) + 132
    exponent = magnitude.bit_length() - 8
    return ~(sign | exponent << 4 | magnitude >> exponent + 3 & 15) & 255


def note(hz):
    return bytes(ulaw(int(9000 * math.sin(i * hz * math.tau / 8000))) for i in range(8000))


async def call(socket, *_):
    stream, loud, waiting = None, 0, 0

    async def say(event, **content):
        await socket.send(json.dumps({"event": event, "streamSid": stream, **content}))

    async for text in socket:
        message = json.loads(text)
        if message["event"] == "start":
            stream = message["start"]["streamSid"]
            for number in range(10):                    # at once: whoever calls plays it at its own pace
                await say("media", media={"payload": base64.b64encode(note(330 + 55 * number)).decode()})
                await say("mark", mark={"name": f"note {number + 1}"})
                waiting += 1
        elif message["event"] == "media":
            # The seven bits of a loud sample are small numbers, since all are inverted.
            heard = base64.b64decode(message["media"]["payload"])
            loud = loud + 1 if sum(1 for code in heard if code & 0x7F < 48) > len(heard) // 4 else 0
            if loud == 4 and waiting:                   # 80 ms
                await say("clear")
        elif message["event"] == "mark":
            waiting -= 1
            mark = message["mark"]
            print(mark["name"], "was heard" if mark.get("played") else "was cut off", flush=True)
        elif message["event"] == "dtmf":
            print("key", message["dtmf"]["digit"], flush=True)
        elif message["event"] == "stop":
            break


async def main():
    async with websockets.serve(call, "127.0.0.1", int(sys.argv[1])):
        print("listening", flush=True)
        await asyncio.Future()


asyncio.run(main())
