"""A call by webrtcbin: sends a tone, and writes down what it hears, until it is ended.

    webrtc.py offer|answer OFFER ANSWER opus|PCMU HEARD

OFFER and ANSWER are named pipes for the descriptions; HEARD gets samples of 16 bits, in mono, at 16000 Hz.
"""

import signal
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC

ENCODERS = {
    "opus": "audio/x-raw,rate=48000,channels=1 ! opusenc ! rtpopuspay "
    "! application/x-rtp,media=audio,encoding-name=OPUS,payload=96",
    "PCMU": "audio/x-raw,rate=8000,channels=1 ! mulawenc ! rtppcmupay min-ptime=20000000 max-ptime=20000000 "
    "! application/x-rtp,media=audio,encoding-name=PCMU,payload=0",
}
DECODERS = {"opus": "rtpopusdepay ! opusdec", "PCMU": "rtppcmudepay ! mulawdec"}

role, offer, answer, codec, heard = sys.argv[1:]
signal.signal(signal.SIGINT, signal.SIG_DFL)
Gst.init(None)
pipeline = Gst.parse_launch(
    f"webrtcbin name=call bundle-policy=max-bundle latency=60 "
    f"audiotestsrc is-live=true freq=550 volume=0.3 ! {ENCODERS[codec]} ! call."
)
call = pipeline.get_by_name("call")


def remote(kind, path):
    """The description that the other side writes."""
    with open(path) as pipe:
        _, message = GstSdp.SDPMessage.new_from_text(pipe.read())
    return GstWebRTC.WebRTCSessionDescription.new(kind, message)


def settle(kind):
    """Makes the own description and takes it; its candidates are gathered from then on."""

    def made(promise, *_):
        # The description is the reply's, and goes with it.
        reply = promise.get_reply()
        call.emit("set-local-description", reply.get_value(kind), Gst.Promise.new())

    call.emit(f"create-{kind}", None, Gst.Promise.new_with_change_func(made))


def tell():
    """Writes the own description, and has an offer answered."""
    with open(offer if role == "offer" else answer, "w") as pipe:
        pipe.write(call.get_property("local-description").sdp.as_text())
    if role == "offer":
        call.emit("set-remote-description", remote(GstWebRTC.WebRTCSDPType.ANSWER, answer), None)


def gathering(*_):
    """Tells the own description once all candidates are in it."""
    if call.get_property("ice-gathering-state") == GstWebRTC.WebRTCICEGatheringState.COMPLETE:
        GLib.idle_add(tell)


def begin():
    """Offers a call, or takes an offer and answers it."""
    if role == "offer":
        settle("offer")
        return
    taken = Gst.Promise.new_with_change_func(lambda *_: settle("answer"))
    call.emit("set-remote-description", remote(GstWebRTC.WebRTCSDPType.OFFER, offer), taken)


def hear(_, pad):
    """Writes down what comes."""
    if pad.direction != Gst.PadDirection.SRC:
        return
    ear = Gst.parse_bin_from_description(
        f"{DECODERS[codec]} ! audioconvert ! audioresample ! audio/x-raw,format=S16LE,rate=16000,channels=1 "
        f"! filesink location={heard} buffer-mode=2 async=false",
        True,
    )
    pipeline.add(ear)
    ear.sync_state_with_parent()
    pad.link(ear.get_static_pad("sink"))


call.connect("pad-added", hear)
call.connect("notify::ice-gathering-state", gathering)
pipeline.set_state(Gst.State.PLAYING)
GLib.idle_add(begin)
# Whoever started it may be gone.
GLib.timeout_add_seconds(30, sys.exit)
GLib.MainLoop().run()
