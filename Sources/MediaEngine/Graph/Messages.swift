import CallBasics

/// A command or an event on its way through a ring: a value of its filter's own type, of up to 48 bytes.
package struct MessageSlot: Sendable, BitwiseCopyable {
    package static var byteCount: Int { 48 }

    private var words = InlineArray<6, UInt64>(repeating: 0)

    /// A slot that holds `message`.
    package init<Message: BitwiseCopyable>(_ message: Message) {
        precondition(MemoryLayout<Message>.size <= Self.byteCount, "messages of filters have at most 48 bytes")
        withUnsafeMutableBytes(of: &words) { $0.storeBytes(of: message, as: Message.self) }
    }

    /// The message, which must be of the type that it was made from.
    package func load<Message: BitwiseCopyable>(as type: Message.Type) -> Message {
        withUnsafeBytes(of: words) { $0.loadUnaligned(as: Message.self) }
    }
}

/// Identity of a filter, for links and events.
package struct FilterID: Hashable, Sendable, BitwiseCopyable {
    let number: UInt64
}

/// Something that happened on the media thread, on its way to the control side.
struct GraphEvent: Sendable, BitwiseCopyable {
    /// The filter where it happened.
    let filter: FilterID
    /// When it happened: the moment at which its tick started.
    let time: MediaTime
    /// What happened, of the filter's own type.
    let message: MessageSlot
}
