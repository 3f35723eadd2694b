internal import CALSA
import Glibc

/// Turns libasound's return codes into errors that say what failed and what to do.
enum ALSAError {
    /// The error of `call` on `pcm`, which answered the negative `code`.
    static func error(_ code: Int32, _ call: StaticString, pcm: String) -> CardError {
        let reason = String(cString: snd_strerror(code))
        switch -code {
        case ENOENT, ENODEV, ENXIO:
            return CardError(
                .absent,
                "ALSA has no PCM \(pcm) (\(reason)). Plug the card in, or choose one that media-tool devices lists."
            )
        case EBUSY, EAGAIN:
            return CardError(
                .busy,
                "PCM \(pcm) is in use by another program (\(reason)). Close that, or choose another PCM."
            )
        case EACCES, EPERM:
            return CardError(
                .forbidden,
                "PCM \(pcm) may not be opened (\(reason)). Add the user to the group audio."
            )
        case ECONNREFUSED, EHOSTDOWN, ENOTCONN:
            return CardError(
                .absent,
                "PCM \(pcm) needs a sound server that does not answer (\(reason)). Start it, or choose hw:0."
            )
        default:
            return CardError(
                .deviceFailure,
                "\(call) on PCM \(pcm) failed: \(reason). Plug the card in again, or choose another."
            )
        }
    }
}
