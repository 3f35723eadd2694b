internal import CallBasics
internal import CLinux
internal import Glibc

/// A connection to a message bus: calls with their replies, and signals.
///
/// It has a thread of its own, which alone touches sd-bus and which ends with it: nothing that a bus does, or leaves
/// undone, holds up another thread, and a process that asks nothing of a bus has no such thread.
///
/// Thread: any.
package final class BusConnection: Sendable {
    /// Signals in their order; the latest 1024 wait.
    package let signals: AsyncStream<BusSignal>
    private let requests: BusRequests

    /// Connects to the first of `addresses` that lets this user in and gives it a name.
    ///
    /// Each has an equal share of what is left of `limit`, so one that never answers keeps no other from being tried.
    ///
    /// - Throws: `BusError`; `CancellationError`.
    package static func connect(to addresses: [String], within limit: Duration = .seconds(5)) async throws
        -> BusConnection
    {
        let requests = try BusRequests()
        let (signals, signal) = AsyncStream.makeStream(of: BusSignal.self, bufferingPolicy: .bufferingNewest(1024))
        let opened = BusResult<Void>()
        // Closes what was opened when nobody waits for it any more.
        let connection = BusConnection(signals: signals, requests: requests)
        let thread = BusThread(requests: requests, opened: opened) { signal.yield($0) }
        let start = Start {
            thread.run(addresses, until: .now + limit)
            signal.finish()
        }
        let context = Unmanaged.passRetained(start)
        let code = linux_start_thread(
            { context in
                if let context { Unmanaged<Start>.fromOpaque(context).takeRetainedValue().run() }
            },
            context.toOpaque()
        )
        guard code == 0 else {
            context.release()
            let reason = String(cString: strerror(-code))
            throw BusError(.noBus, "No thread could be started for the bus: \(reason). End other work first.")
        }
        try await opened.value
        return connection
    }

    private init(signals: AsyncStream<BusSignal>, requests: BusRequests) {
        self.signals = signals
        self.requests = requests
    }

    deinit {
        requests.close()
    }

    /// Calls a method and waits for what it returns.
    ///
    /// - Throws: `BusError`, with code `refused` when the answer is an error; `CancellationError`.
    @discardableResult
    package func call(
        _ call: BusCall,
        until deadline: ContinuousClock.Instant = .now + .seconds(5)
    ) async throws -> [BusValue] {
        let reply = BusResult<[BusValue]>()
        requests.add(BusRequest(call: call, deadline: deadline, reply: reply))
        return try await reply.value
    }

    /// Whether the bus has closed it, or it was closed.
    package var hasEnded: Bool { requests.end != nil || requests.isClosed }

    /// Ends the connection; calls that wait fail.
    package func close() {
        requests.close()
    }

    private final class Start: Sendable {
        let run: @Sendable () -> Void
        init(run: @escaping @Sendable () -> Void) { self.run = run }
    }
}
