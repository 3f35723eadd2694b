import Synchronization
public import CallBasics

/// One job in the graph: a subclass takes blocks or packets from its inputs and gives some to its outputs.
///
/// Thread: made and described on the control side; from the moment it is in an installed plan, `process` and every stored
/// property that it touches belong to the media thread. That is why a subclass says `@unchecked Sendable`: the rule is
/// kept by the plan, not by the compiler. What the control side reads or changes meanwhile goes through atomics; within
/// the package through `LatestValue` and the commands of a `ControlledFilter`.
/// On the media thread a filter must not allocate, lock, wait, log, or grow an array: one late tick is a click in
/// someone's ear.
open class Filter: @unchecked Sendable {
    /// Identity in links and events.
    package let id: FilterID

    // Behind one reference, so that what a subclass touches in a tick begins on the object's first cache line.
    private let particulars: Particulars

    private static let nextNumber = Atomic<UInt64>(1)

    /// A filter that is described by `description`.
    public init(_ description: FilterDescription) {
        particulars = Particulars(description)
        id = FilterID(number: Self.nextNumber.wrappingAdd(1, ordering: .relaxed).oldValue)
    }

    /// What the filter says of itself.
    ///
    /// It must not change while the filter is in a graph.
    package var description: FilterDescription { particulars.description }

    /// Calls and time of the filter, as of the last time it was measured.
    var profile: FilterProfile { particulars.profile.value }

    /// Notes that the filter has run in `tickCount` more ticks, the last of which took `nanoseconds`.
    ///
    /// Thread: media.
    func addProfile(tickCount: Int, nanoseconds: Int64) {
        particulars.running.add(tickCount: tickCount, nanoseconds: nanoseconds)
        particulars.profile.publish(particulars.running)
    }

    /// Does one tick of work.
    ///
    /// Every output must be written, each tick; packet outputs are found empty.
    open func process(_ io: borrowing FilterIO) {}

    /// Obeys a command of the filter's own type, between two ticks.
    package func obey(_ message: MessageSlot) {}
}

/// A filter that takes commands and tells of events, each a value of a type of its own.
///
/// Both types are small enums (`BitwiseCopyable`, at most 48 bytes), so that they travel through rings without memory of
/// their own; `Never` stands for none.
/// Thread: as every filter's; `handle` and `emit` media.
package class ControlledFilter<Command: BitwiseCopyable & Sendable, Event: BitwiseCopyable & Sendable>: Filter,
    @unchecked Sendable
{
    /// Obeys `command`, between two ticks.
    package func handle(_ command: Command) {}

    /// Tells the control side that `event` happened; a full ring counts the loss.
    ///
    /// - Returns: Whether it fit.
    @discardableResult
    package final func emit(_ event: Event, _ io: borrowing FilterIO) -> Bool {
        io.push(MessageSlot(event))
    }

    /// Tells the control side that `event` happened, if there is room; else it is to be told again, and is not counted as lost.
    ///
    /// - Returns: Whether it fit.
    final func offer(_ event: Event, _ io: borrowing FilterIO) -> Bool {
        guard io.hasEventRoom else { return false }
        return emit(event, io)
    }

    package final override func obey(_ message: MessageSlot) { handle(message.load(as: Command.self)) }
}

/// What a filter is asked for rarely.
private final class Particulars {
    let description: FilterDescription
    let profile = LatestValue(FilterProfile())
    /// The media thread's own copy of `profile`.
    var running = FilterProfile()

    init(_ description: FilterDescription) {
        self.description = description
    }
}

/// The blocks of one filter in one tick, and the tick's time.
///
/// Ports are numbered as in the filter's description. Asking for a port that does not exist, or for samples where
/// there are packets, is a mistake of the filter's author and traps.
public struct FilterIO: ~Copyable {
    @usableFromInline let slots: UnsafePointer<PortSlot>
    @usableFromInline let inputCount: Int
    @usableFromInline let outputCount: Int
    private let filter: FilterID
    private unowned(unsafe) let events: RingBuffer<GraphEvent>

    /// When the tick is due: a whole number of ticks after the one before, unless a card sets the pace; then when that had enough.
    public let time: MediaTime
    /// How much later than `time` the tick really started.
    package let lateness: Duration
    /// The tick's length.
    package let tickDuration: Duration

    /// The blocks at `slots`, inputs before outputs.
    init(
        slots: UnsafePointer<PortSlot>,
        inputCount: Int,
        outputCount: Int,
        filter: FilterID,
        events: RingBuffer<GraphEvent>,
        time: MediaTime,
        lateness: Duration,
        tickDuration: Duration
    ) {
        self.slots = slots
        self.inputCount = inputCount
        self.outputCount = outputCount
        self.filter = filter
        self.events = events
        self.time = time
        self.lateness = lateness
        self.tickDuration = tickDuration
    }

    /// The samples of input port `index`.
    @inlinable public func input(_ index: Int = 0) -> AudioBlock {
        precondition(index >= 0 && index < inputCount)
        return slots[index].audioBlock
    }

    /// The samples of output port `index`.
    @inlinable public func output(_ index: Int = 0) -> AudioBlock {
        precondition(index >= 0 && index < outputCount)
        return slots[inputCount &+ index].audioBlock
    }

    /// The packets of input port `index`.
    package func inputPackets(_ index: Int = 0) -> PacketBatch {
        precondition(index >= 0 && index < inputCount)
        return slots[index].packetBatch
    }

    /// The packets of output port `index`.
    package func outputPackets(_ index: Int = 0) -> PacketBatch {
        precondition(index >= 0 && index < outputCount)
        return slots[inputCount &+ index].packetBatch
    }

    /// Whether one more event finds room.
    var hasEventRoom: Bool { events.freeCount > 0 }

    func push(_ message: MessageSlot) -> Bool {
        events.push(GraphEvent(filter: filter, time: time + lateness, message: message))
    }
}

/// Where one port's memory is: samples, or a batch of packets when `channelCount` is 0.
@usableFromInline
struct PortSlot: BitwiseCopyable {
    @usableFromInline let base: UnsafeMutableRawPointer
    @usableFromInline let frameCount: Int32
    @usableFromInline let channelCount: Int32

    @inlinable var audioBlock: AudioBlock {
        precondition(channelCount > 0)
        let samples = base.assumingMemoryBound(to: Int16.self)
        return AudioBlock(base: samples, frameCount: frameCount, channelCount: channelCount)
    }

    var packetBatch: PacketBatch {
        precondition(channelCount == 0)
        return PacketBatch(base: base)
    }

    init(base: UnsafeMutableRawPointer, frameCount: Int32, channelCount: Int32) {
        self.base = base
        self.frameCount = frameCount
        self.channelCount = channelCount
    }
}
