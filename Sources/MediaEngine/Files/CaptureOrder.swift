package import CallBasics

/// Puts tapped datagrams into the order of their times before they are written, as readers of captures expect it.
///
/// What was received bears the kernel's time, which lies up to some ticks before that of what was sent before it was looked
/// at. So each datagram waits until one has come that is `reach` younger, or until `longestWait` is over: where nothing more
/// comes, the reader of a pipe does not wait for ever.
/// Shape: at most `maximumCount` wait; beyond that the oldest go.
/// Pure; it allocates.
package struct CaptureOrder {
    /// A datagram with its way and time.
    package struct Datagram: Sendable, Equatable {
        package let time: MediaTime
        package let source: SocketAddress
        package let destination: SocketAddress
        package let bytes: [UInt8]

        /// A datagram that travelled at `time`.
        package init(time: MediaTime, source: SocketAddress, destination: SocketAddress, bytes: [UInt8]) {
            (self.time, self.source, self.destination, self.bytes) = (time, source, destination, bytes)
        }
    }

    /// How much later than others a datagram may come: some ticks, and a thread that was held up.
    package static let reach = Duration.milliseconds(200)
    /// How long a datagram waits at most, by the clock: a thread that is held up for longer puts some out of order.
    package static let longestWait = Duration.seconds(1)
    /// Datagrams that wait at most.
    package static let maximumCount = 1 << 14

    /// In the order of time; of the same time, in the order in which they came.
    private var waiting: [Datagram] = []

    /// No datagram waits.
    package init() {}

    /// Takes `datagram` to its place.
    package mutating func add(_ datagram: Datagram) {
        let place = (waiting.lastIndex { $0.time <= datagram.time } ?? -1) + 1
        waiting.insert(datagram, at: place)
    }

    /// Gives the datagrams that none can precede any more, in the order of time.
    ///
    /// - Parameters:
    ///   - now: What the clock says.
    ///   - all: Whether no more will come, so that none waits.
    /// - Returns: The datagrams, which no longer wait.
    package mutating func take(at now: MediaTime, all: Bool = false) -> [Datagram] {
        guard let newest = waiting.last?.time else { return [] }
        let isDue = { (datagram: Datagram) in
            datagram.time + Self.reach <= newest || datagram.time + Self.longestWait <= now
        }
        let dueCount = all ? waiting.count : waiting.firstIndex { !isDue($0) } ?? waiting.count
        let count = max(dueCount, waiting.count - Self.maximumCount)
        let taken = Array(waiting.prefix(count))
        waiting.removeFirst(count)
        return taken
    }
}
