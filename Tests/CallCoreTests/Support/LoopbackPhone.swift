import CallCore
import MediaEngine

extension Phone {
    /// A phone at any port of 127.0.0.1.
    static func onLoopback(_ engine: CallEngine, _ change: (inout PhoneConfiguration) -> Void = { _ in }) async throws
        -> Phone
    {
        var configuration = PhoneConfiguration()
        configuration.local = .loopback(port: 0)
        change(&configuration)
        return try await Phone(engine, configuration)
    }
}

extension CallConfiguration {
    /// Sends a loud buzz for 10 s, heard by nobody.
    static func buzz(_ sound: inout CallConfiguration) {
        let rate = 16_000
        let samples = (0..<10 * rate).map { Int16($0 % 40 < 20 ? 8000 : -8000) }
        (sound.source, sound.sink) = (.samples(samples, AudioFormat(sampleRate: rate)), .none)
    }
}
