/// What is known of a payload before its packet is numbered.
///
/// Units: `timestamp` in units of the payload type's clock rate, on the media's own time line.
package struct PayloadHeader: Hashable, Sendable, BitwiseCopyable {
    /// The payload type, 0 to 127.
    package var payloadType: UInt8
    /// The sampling instant of the payload's first sample.
    package var timestamp: UInt32
    /// The marker bit.
    package var isMarked: Bool

    /// A header with the given fields.
    package init(payloadType: UInt8, timestamp: UInt32, isMarked: Bool = false) {
        self.payloadType = payloadType
        self.timestamp = timestamp
        self.isMarked = isMarked
    }
}
