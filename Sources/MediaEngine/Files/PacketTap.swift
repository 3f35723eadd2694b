package import CallBasics

/// Carries copies of datagrams from the media thread to a capture file, without either waiting.
///
/// A full tap leaves datagrams out and counts them.
/// Shape: a ring of bytes, allocated once.
/// Thread: `record` media, one thread; `drain` one other thread.
package final class PacketTap: @unchecked Sendable {
    /// Longest datagram that is carried.
    package static let maximumByteCount = 65_507

    private struct Entry: BitwiseCopyable {
        var byteCount = 0
        var source = SocketAddress.loopback(port: 0)
        var destination = SocketAddress.loopback(port: 0)
        var time = MediaTime.zero
    }

    private static var entryByteCount: Int { MemoryLayout<Entry>.stride }

    private let ring: RingBuffer<UInt8>
    /// Where an entry is put together, so that the ring takes it in one piece.
    private let recordScratch: UnsafeMutableRawPointer
    private let drainScratch: UnsafeMutableRawPointer
    private let droppedTotal = LatestValue(0)
    private var droppedByMedia = 0

    /// A tap that holds about `capacity` bytes between two drains; 1 MiB is a minute of a G.711 leg.
    package init(capacity: Int = 1 << 20) {
        ring = RingBuffer(minimumCapacity: capacity)
        recordScratch = .allocate(byteCount: Self.entryByteCount + Self.maximumByteCount, alignment: 16)
        drainScratch = .allocate(byteCount: Self.entryByteCount + Self.maximumByteCount, alignment: 16)
    }

    deinit {
        recordScratch.deallocate()
        drainScratch.deallocate()
    }

    /// Datagrams left out because the tap was full or they were too long.
    package var droppedCount: Int { droppedTotal.value }

    /// Takes a copy of a datagram that travelled at `time`; answers false when it was left out.
    @discardableResult
    package func record(
        _ bytes: Span<UInt8>,
        from source: SocketAddress,
        to destination: SocketAddress,
        at time: MediaTime
    ) -> Bool {
        let total = Self.entryByteCount &+ bytes.count
        guard bytes.count <= Self.maximumByteCount, ring.freeCount >= total else {
            droppedByMedia &+= 1
            droppedTotal.publish(droppedByMedia)
            return false
        }
        let entry = Entry(byteCount: bytes.count, source: source, destination: destination, time: time)
        recordScratch.storeBytes(of: entry, as: Entry.self)
        let target = recordScratch + Self.entryByteCount
        bytes.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            target.copyMemory(from: start, byteCount: source.count)
        }
        let start = recordScratch.assumingMemoryBound(to: UInt8.self)
        ring.push(contentsOf: UnsafeBufferPointer(start: start, count: total).span)
        return true
    }

    /// Moves everything that has been recorded to `order`, and answers how many datagrams that were.
    @discardableResult
    package func drain(into order: inout CaptureOrder) -> Int {
        var count = 0
        while pop(Self.entryByteCount) {
            let entry = drainScratch.load(as: Entry.self)
            guard pop(entry.byteCount) else { break }
            let start = drainScratch.assumingMemoryBound(to: UInt8.self)
            order.add(
                CaptureOrder.Datagram(
                    time: entry.time,
                    source: entry.source,
                    destination: entry.destination,
                    bytes: Array(UnsafeBufferPointer(start: start, count: entry.byteCount))
                )
            )
            count += 1
        }
        return count
    }

    private func pop(_ count: Int) -> Bool {
        guard ring.count >= count else { return false }
        let start = drainScratch.assumingMemoryBound(to: UInt8.self)
        var target = UnsafeMutableBufferPointer(start: start, count: count).mutableSpan
        return ring.pop(into: &target) == count
    }
}
