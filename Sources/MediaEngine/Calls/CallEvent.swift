/// Something that happened in a call.
public enum CallEvent: Sendable, Equatable {
    /// The other side pressed a key (RFC 4733, or tones where the call listens for them).
    case keyDown(DTMFDigit)
    /// The other side released it after it was held for `duration`.
    case keyUp(DTMFDigit, duration: Duration)
    /// The other side told what it receives: round trip and loss are new.
    ///
    /// `fractionLost` is the share of our packets that it lost since its report before, 0 to 1.
    case report(fractionLost: Double)
    /// What is sent is protected against loss in another way, because of what the other side reported.
    case lossProtection(LossProtection, reason: String)
    /// Another sender took the place of the one that was heard.
    case sourceChanged
    /// Nothing of the other side has come for so long, though it is expected to send.
    case mediaStalled(after: Duration)
    /// Its packets come again.
    case mediaResumed
    /// The other side said goodbye (RTCP BYE).
    case goodbye
    /// The source (file, samples) has been played to its end.
    case sourceEnded
    /// Something is missing in a file that the call writes (a recording, the sink, the capture), or will be: its disk is full
    /// or too slow.
    ///
    /// The call goes on, and writes what it can.
    case recordingFailed(EngineError)
    /// The call was put on hold because something else needs the sound.
    case interruptionBegan
    /// The call goes on after an interruption.
    case interruptionEnded
}
