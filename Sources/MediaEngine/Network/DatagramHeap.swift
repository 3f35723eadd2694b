import CallBasics

/// Datagrams by the time at which they are due, earliest first: a binary heap over memory that is allocated once.
///
/// Equal times keep the order of insertion. What the datagrams hold lies in the slots of a `SlotPool`.
/// Thread: one at a time; nothing allocates after `init`.
struct DatagramHeap: ~Copyable {
    /// A datagram that waits.
    struct Entry: BitwiseCopyable {
        let due: MediaTime
        let source: SocketAddress
        let byteCount: Int32
        let slot: Int32
    }

    private struct Node: BitwiseCopyable {
        let entry: Entry
        let order: UInt64

        func precedes(_ other: Node) -> Bool {
            entry.due < other.entry.due || (entry.due == other.entry.due && order < other.order)
        }
    }

    private let nodes: UnsafeMutablePointer<Node>
    private let capacity: Int
    private(set) var count = 0
    private var nextOrder: UInt64 = 0

    /// A heap for `capacity` datagrams.
    init(capacity: Int) {
        self.capacity = capacity
        nodes = .allocate(capacity: capacity)
    }

    deinit {
        nodes.deallocate()
    }

    /// Whether there is no room for another.
    var isFull: Bool { count == capacity }

    /// When the first datagram is due; nil when none waits.
    var nextDue: MediaTime? { count == 0 ? nil : nodes[0].entry.due }

    /// Adds `entry`; there must be room for it.
    mutating func insert(_ entry: Entry) {
        precondition(count < capacity, "a heap has room for all slots of its pool")
        let node = Node(entry: entry, order: nextOrder)
        var index = count
        nextOrder &+= 1
        count &+= 1
        while index > 0, node.precedes(nodes[(index &- 1) / 2]) {
            nodes[index] = nodes[(index &- 1) / 2]
            index = (index &- 1) / 2
        }
        (nodes + index).initialize(to: node)
    }

    /// Takes the first datagram that is due by `now`.
    mutating func removeFirst(dueBy now: MediaTime) -> Entry? {
        guard count > 0, nodes[0].entry.due <= now else { return nil }
        let first = nodes[0].entry
        count &-= 1
        if count > 0 { sift(nodes[count]) }
        return first
    }

    /// Puts `node` in the place that became free at the top.
    private func sift(_ node: Node) {
        var index = 0
        while true {
            var child = 2 &* index &+ 1
            guard child < count else { break }
            if child &+ 1 < count, nodes[child &+ 1].precedes(nodes[child]) { child &+= 1 }
            guard nodes[child].precedes(node) else { break }
            nodes[index] = nodes[child]
            index = child
        }
        nodes[index] = node
    }
}
