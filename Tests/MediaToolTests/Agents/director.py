"""An agent of Twilio's format that does what the caller's keys ask it for, and prints what it is told.

    1: presses keys   2: holds   3: resumes   4: hands over to nobody   9: says a tone of 1 s, and hangs up
"""
import asyncio, base64, json, math, sys
import websockets


def tone():
    """A square wave of 1000 Hz, in u-law."""
    return bytes(0x90 if i // 4 % 2 == 0 else 0x10 for i in range(8000))


async def call(socket, *_):
    async def say(event, **content):
        await socket.send(json.dumps({"event": event, "streamSid": stream, **content}))

    stream = None
    async for text in socket:
        message = json.loads(text)
        event = message["event"]
        if event == "start":
            stream = message["start"]["streamSid"]
            told = message["start"]["customParameters"]
            print("start", *(f"{name}={told[name]}" for name in sorted(told)), flush=True)
        elif event == "dtmf":
            key = message["dtmf"]["digit"]
            if key == "1":
                await say("dtmf", dtmf={"digit": "12#"})
            elif key == "2":
                await say("hold")
            elif key == "3":
                await say("resume")
            elif key == "4":
                await say("transfer", transfer={"to": "nobody at all"})
            elif key == "9":
                await say("media", media={"payload": base64.b64encode(tone()).decode()})
                await say("mark", mark={"name": "farewell"})
                await say("hangup")
        elif event == "transferFailed":
            print("transfer failed", message["transferFailed"]["code"], flush=True)
        elif event == "mark":
            print("mark", message["mark"]["name"], message["mark"]["played"], flush=True)
        elif event == "stop":
            print("stop", message["stop"].get("reason"), flush=True)


async def main():
    async with websockets.serve(call, "127.0.0.1", int(sys.argv[1])):
        print("listening", flush=True)
        await asyncio.Future()


asyncio.run(main())
