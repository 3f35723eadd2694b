internal import NIOCore

/// A received payload that is well-formed and within bounds, for as long as something reads from it.
final class CBORMessage {
    let items: CBORItems
    /// Keeps the memory that `items` reads.
    private let payload: ByteBuffer

    /// Checks all of it.
    init(_ payload: ByteBuffer, within bounds: MessageBounds) throws(CBORFault) {
        self.payload = payload
        // The storage stays as it is while `payload` refers to it: who writes to another reference gets a copy.
        items = try CBORItems(checking: payload.withUnsafeReadableBytes { CBORReader($0) }, within: bounds)
    }
}
