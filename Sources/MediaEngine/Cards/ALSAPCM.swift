internal import CALSA
import Glibc

/// An open ALSA PCM, set up for 16-bit interleaved frames and never waiting; closed when the object goes.
///
/// Thread: made and freed on a control thread; the media thread reads and writes by `handle`.
final class ALSAPCM: @unchecked Sendable {
    /// The channels and periods that the device agreed to.
    struct Shape: Sendable {
        var channelCount = 0
        var periodFrameCount = 0
        var bufferFrameCount = 0
    }

    let handle: OpaquePointer
    let name: String
    let shape: Shape
    /// Whether the device moves frames at the pace of a clock.
    ///
    /// ALSA's own `null` and `file` take any amount at once.
    let isClocked: Bool

    /// Opens and sets up the PCM called `name`.
    ///
    /// - Throws: `CardError` when it is absent, busy, or cannot do what is asked.
    init(_ name: String, _ direction: CardDirection, _ configuration: CardConfiguration) throws(CardError) {
        calsa_silence()
        let stream = direction == .playback ? SND_PCM_STREAM_PLAYBACK : SND_PCM_STREAM_CAPTURE
        var opened: OpaquePointer?
        let code = snd_pcm_open(&opened, name, stream, Int32(SND_PCM_NONBLOCK))
        guard code >= 0, let handle = opened else {
            throw ALSAError.error(code, "snd_pcm_open", pcm: name)
        }
        do throws(CardError) {
            shape = try Self.setHardware(handle, name, direction, configuration)
            try Self.setSoftware(handle, name, direction, configuration, shape)
        } catch {
            snd_pcm_close(handle)
            throw error
        }
        self.handle = handle
        self.name = name
        let type = snd_pcm_type(handle)
        isClocked = type != SND_PCM_TYPE_NULL && type != SND_PCM_TYPE_FILE
    }

    deinit {
        // What is still queued is given up: waiting for it could take as long as the device likes.
        snd_pcm_drop(handle)
        snd_pcm_close(handle)
    }

    /// Waits until a period can be moved.
    ///
    /// Thread: of a driver.
    func wait(timeout: Duration) -> Bool {
        snd_pcm_wait(handle, Int32(clamping: timeout.nanoseconds / 1_000_000)) == 1
    }

    /// Whether `code` says that the device will not work again through this handle.
    static func isGone(_ code: Int) -> Bool {
        switch Int32(truncatingIfNeeded: -code) {
        case EAGAIN, EPIPE, ESTRPIPE, EINTR: false
        default: true
        }
    }

    private static func setHardware(
        _ handle: OpaquePointer,
        _ name: String,
        _ direction: CardDirection,
        _ configuration: CardConfiguration
    ) throws(CardError) -> Shape {
        var allocated: OpaquePointer?
        try check(snd_pcm_hw_params_malloc(&allocated), "snd_pcm_hw_params_malloc", name)
        guard let parameters = allocated else { throw ALSAError.error(-ENOMEM, "snd_pcm_hw_params_malloc", pcm: name) }
        defer { snd_pcm_hw_params_free(parameters) }
        try check(snd_pcm_hw_params_any(handle, parameters), "snd_pcm_hw_params_any", name)
        try check(
            snd_pcm_hw_params_set_access(handle, parameters, SND_PCM_ACCESS_RW_INTERLEAVED),
            "setting interleaved access",
            name
        )
        guard snd_pcm_hw_params_set_format(handle, parameters, SND_PCM_FORMAT_S16_LE) >= 0 else {
            throw refused("16-bit samples", name)
        }
        var shape = Shape()
        shape.channelCount = try setChannels(handle, parameters, name, wanted: configuration.format.channelCount)
        try setRate(handle, parameters, name, configuration.format.sampleRate)

        var period = snd_pcm_uframes_t(max(16, configuration.format.frameCount(in: configuration.period)))
        try check(
            snd_pcm_hw_params_set_period_size_near(handle, parameters, &period, nil),
            "setting the period",
            name
        )
        let duration =
            direction == .capture ? max(configuration.buffer, Self.shortestCaptureBuffer) : configuration.buffer
        let asked = configuration.format.frameCount(in: duration)
        var buffer = max(snd_pcm_uframes_t(asked), 2 * period)
        try check(
            snd_pcm_hw_params_set_buffer_size_near(handle, parameters, &buffer),
            "setting the buffer",
            name
        )
        try check(snd_pcm_hw_params(handle, parameters), "snd_pcm_hw_params", name)
        snd_pcm_hw_params_get_period_size(parameters, &period, nil)
        snd_pcm_hw_params_get_buffer_size(parameters, &buffer)
        shape.periodFrameCount = Int(period)
        shape.bufferFrameCount = Int(buffer)
        return shape
    }

    private static func setChannels(
        _ handle: OpaquePointer,
        _ parameters: OpaquePointer,
        _ name: String,
        wanted: Int
    ) throws(CardError) -> Int {
        for count in [wanted, wanted == 1 ? 2 : 1]
        where snd_pcm_hw_params_set_channels(handle, parameters, UInt32(count)) >= 0 {
            return count
        }
        throw refused("\(wanted) channels, and one or two as well", name)
    }

    private static func setRate(
        _ handle: OpaquePointer,
        _ parameters: OpaquePointer,
        _ name: String,
        _ wanted: Int
    ) throws(CardError) {
        guard snd_pcm_hw_params_set_rate(handle, parameters, UInt32(clamping: wanted), 0) < 0 else { return }
        var near = UInt32(clamping: wanted)
        guard snd_pcm_hw_params_set_rate_near(handle, parameters, &near, nil) >= 0 else {
            throw refused("\(wanted) Hz", name)
        }
        throw CardError(
            .unsupported,
            "PCM \(name) refused \(wanted) Hz. Ask for \(near) Hz, or open \(converting(name))."
        )
    }

    private static func setSoftware(
        _ handle: OpaquePointer,
        _ name: String,
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        _ shape: Shape
    ) throws(CardError) {
        var allocated: OpaquePointer?
        try check(snd_pcm_sw_params_malloc(&allocated), "snd_pcm_sw_params_malloc", name)
        guard let parameters = allocated else { throw ALSAError.error(-ENOMEM, "snd_pcm_sw_params_malloc", pcm: name) }
        defer { snd_pcm_sw_params_free(parameters) }
        try check(snd_pcm_sw_params_current(handle, parameters), "snd_pcm_sw_params_current", name)
        // Playback starts with the first block behind the silence; capture when it is told to.
        let prefill = ALSAPCM.prefill(configuration, shape)
        let threshold = direction == .playback ? snd_pcm_uframes_t(prefill + 1) : snd_pcm_uframes_t(Int32.max)
        try check(
            snd_pcm_sw_params_set_start_threshold(handle, parameters, threshold),
            "setting the start threshold",
            name
        )
        try check(
            snd_pcm_sw_params_set_avail_min(handle, parameters, snd_pcm_uframes_t(shape.periodFrameCount)),
            "setting the wake-up point",
            name
        )
        try check(snd_pcm_sw_params(handle, parameters), "snd_pcm_sw_params", name)
        try check(snd_pcm_prepare(handle), "snd_pcm_prepare", name)
    }

    /// Frames of silence to put in front: what is asked, as far as a period remains free.
    static func prefill(_ configuration: CardConfiguration, _ shape: Shape) -> Int {
        min(
            configuration.format.frameCount(in: configuration.prefill),
            max(0, shape.bufferFrameCount - shape.periodFrameCount)
        )
    }

    /// A recording buffer costs no latency, and keeps what comes while the process stands: what a container's quota or a
    /// stopped process takes is less than this.
    static let shortestCaptureBuffer = Duration.milliseconds(400)

    private static func check(_ code: Int32, _ call: StaticString, _ name: String) throws(CardError) {
        guard code < 0 else { return }
        throw ALSAError.error(code, call, pcm: name)
    }

    private static func refused(_ what: String, _ name: String) -> CardError {
        CardError(.unsupported, "PCM \(name) refused \(what). Open \(converting(name)), or another card.")
    }

    private static func converting(_ name: String) -> String {
        name.hasPrefix("hw:") ? "plug\(name), which converts" : "a PCM of type plug over it, which converts"
    }
}
