/// Names a dialog on this side.
///
/// Source: RFC 3261, section 12
package struct DialogID: Hashable, Sendable {
    package let callID: Bytes
    package let localTag: Bytes
    /// Empty where the peer gives no tags, as RFC 2543 had it.
    package let remoteTag: Bytes

    package init(callID: Bytes, localTag: Bytes, remoteTag: Bytes) {
        (self.callID, self.localTag) = (callID.detached, localTag.detached)
        self.remoteTag = remoteTag.detached
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
