/// Names a dialog on this side.
///
/// Source: RFC 3261, section 12
package struct DialogID: Hashable, Sendable {
    /// The Call-ID and both tags, with a NUL between them; a tag that came in quotes may hold one, too: the counts tell them apart.
    private let key: ByteKey
    private let callIDCount: UInt32
    private let localTagCount: UInt32

    package var callID: Bytes { key.bytes[..<Int(callIDCount)] }
    package var localTag: Bytes { key.bytes[(Int(callIDCount) + 1)...].prefix(Int(localTagCount)) }
    /// Empty where the peer gives no tags, as RFC 2543 had it.
    package var remoteTag: Bytes { key.bytes[(Int(callIDCount) + Int(localTagCount) + 2)...] }

    package init(callID: Bytes, localTag: Bytes, remoteTag: Bytes) {
        var text: [UInt8] = []
        text.reserveCapacity(callID.count + localTag.count + remoteTag.count + 2)
        text += callID
        text.append(0)
        text += localTag
        text.append(0)
        text += remoteTag
        key = ByteKey(bytes: text)
        (callIDCount, localTagCount) = (UInt32(callID.count), UInt32(localTag.count))
    }

    /// The dialog that a received request belongs to; nil when it is outside of any.
    ///
    /// Throws: `badRequest` when a header of it breaks the grammar
    package init?(received request: SIPMessage) throws(SIPError) {
        guard let callID = request.callID, let from = try request.from(), let tag = try request.to()?.tag else {
            return nil
        }
        self.init(callID: callID, localTag: tag, remoteTag: from.tag ?? [])
    }

    /// The dialog that a received response belongs to, or makes; nil when it has no tag of the peer's.
    ///
    /// A 2xx makes one also without a tag.
    /// Throws: `badRequest` when a header of it breaks the grammar
    package init?(response: SIPMessage) throws(SIPError) {
        guard let status = response.statusCode, status > 100, let callID = response.callID,
            let localTag = try response.from()?.tag, let to = try response.to()
        else { return nil }
        guard to.tag != nil || 200...299 ~= status else { return nil }
        self.init(callID: callID, localTag: localTag, remoteTag: to.tag ?? [])
    }
}
