#!/usr/bin/env python3
"""A voice agent for Asterisk's WebSocket channel that dials in: says two notes, then gives back what it hears. Needs python3-websockets.

    media-tool agent try --agents-at 127.0.0.1:8088 --rate 16000
    python3 Examples/agent-asterisk.py ws://127.0.0.1:8088/media/...    # as the line above says
"""
import asyncio, json, math, struct, sys
import websockets


async def main():
    async with websockets.connect(sys.argv[1], subprotocols=["media"]) as socket:
        start = json.loads(await socket.recv())         # MEDIA_START comes first
        if not start["format"].startswith("slin"):
            sys.exit("It speaks 16 bits alone, and not " + start["format"] + ": give --rate 16000.")
        rate = int(start["format"].removeprefix("slin")) * 1000
        print("connected", start["channel_id"], start["channel_variables"], flush=True)

        async def say(command, **content):
            await socket.send(json.dumps({"command": command, **content}))

        await say("START_MEDIA_BUFFERING")
        for hz in (440, 660):                           # at once: whoever is called plays it at its own pace
            wave = [int(9000 * math.sin(i * hz * math.tau / rate)) for i in range(rate // 2)]
            await socket.send(struct.pack(f"<{len(wave)}h", *wave))
        await say("STOP_MEDIA_BUFFERING", correlation_id="greeting")
        heard_out = False
        async for message in socket:
            if isinstance(message, bytes):
                if heard_out:
                    await socket.send(message)
                continue
            event = json.loads(message)
            if event["event"] == "MEDIA_BUFFERING_COMPLETED":
                heard_out = True
                print(event["correlation_id"], "was heard", flush=True)
            elif event["event"] == "DTMF_END":
                print("key", event["digit"], flush=True)
                if event["digit"] == "#":
                    await say("HANGUP")


asyncio.run(main())
