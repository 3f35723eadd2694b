"""A bot of Pipecat without services, for Twilio's format at ws://127.0.0.1:PORT/: it greets by a tone, and says another at the end of each turn.

It has Pipecat's own voice activity (Silero) and end of turn (Smart Turn), and does not know that Twilio is not there. Prints what it does.
"""
import array, math, sys

import uvicorn
from fastapi import FastAPI, WebSocket
from loguru import logger
from pipecat.audio.turn.smart_turn.local_smart_turn_v3 import LocalSmartTurnAnalyzerV3
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.frames.frames import (
    InputAudioRawFrame,
    TTSAudioRawFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
    UserStartedSpeakingFrame,
    UserStoppedSpeakingFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.audio.vad_processor import VADProcessor
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.runner.utils import parse_telephony_websocket
from pipecat.serializers.twilio import TwilioFrameSerializer
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport
from pipecat.turns.user_stop import TurnAnalyzerUserTurnStopStrategy
from pipecat.turns.user_turn_processor import UserTurnProcessor
from pipecat.turns.user_turn_strategies import UserTurnStrategies
from pipecat.workers.runner import WorkerRunner

RATE = 8000
application = FastAPI()
logger.remove()


class Talk(FrameProcessor):
    """Says six seconds of a tone when the call begins, and when the caller has ended a turn."""

    isFirst = True

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            if self.isFirst:
                self.isFirst = False
                await self.say()
            return
        if isinstance(frame, UserStartedSpeakingFrame):
            print("turn begins", flush=True)
        if isinstance(frame, UserStoppedSpeakingFrame):
            print("turn ends", flush=True)
            await self.say()
        await self.push_frame(frame, direction)

    async def say(self):
        print("says", flush=True)
        tone = array.array("h", (int(8000 * math.sin(place * 440 * math.tau / RATE)) for place in range(RATE // 5)))
        await self.push_frame(TTSStartedFrame())
        for _ in range(30):
            await self.push_frame(TTSAudioRawFrame(audio=tone.tobytes(), sample_rate=RATE, num_channels=1))
        await self.push_frame(TTSStoppedFrame())


@application.websocket("/")
async def call(socket: WebSocket):
    await socket.accept()
    kind, told = await parse_telephony_websocket(socket)
    print("call by", kind, flush=True)
    serializer = TwilioFrameSerializer(
        told.stream_id, told.call_id, params=TwilioFrameSerializer.InputParams(auto_hang_up=False)
    )
    transport = FastAPIWebsocketTransport(
        websocket=socket,
        params=FastAPIWebsocketParams(
            audio_in_enabled=True, audio_out_enabled=True, add_wav_header=False, serializer=serializer
        ),
    )
    ends = TurnAnalyzerUserTurnStopStrategy(turn_analyzer=LocalSmartTurnAnalyzerV3(), wait_for_transcript=False)
    parts = [
        transport.input(),
        VADProcessor(vad_analyzer=SileroVADAnalyzer()),
        UserTurnProcessor(user_turn_strategies=UserTurnStrategies(stop=[ends])),
        Talk(),
        transport.output(),
    ]
    worker = PipelineWorker(
        Pipeline(parts), params=PipelineParams(audio_in_sample_rate=RATE, audio_out_sample_rate=RATE)
    )

    @transport.event_handler("on_client_disconnected")
    async def leave(*_):
        await worker.cancel()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()
    print("call over", flush=True)


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("listening", flush=True)


Server(uvicorn.Config(application, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")).run()
