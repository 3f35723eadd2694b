internal import Dispatch
internal import Glibc

/// SIGUSR1 and SIGUSR2, as a stream, for as long as the value is there.
final class UserSignals: Sendable {
    enum Name: Sendable { case first, second }

    let signals: AsyncStream<Name>
    /// Nothing but held.
    private nonisolated(unsafe) let sources: [any DispatchSourceSignal]

    init() {
        let (signals, continuation) = AsyncStream.makeStream(of: Name.self, bufferingPolicy: .bufferingOldest(16))
        self.signals = signals
        sources = [(SIGUSR1, Name.first), (SIGUSR2, Name.second)].map { number, name in
            // The source sees it all the same; by default it would end the process.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { continuation.yield(name) }
            source.resume()
            return source
        }
    }
}
