package import CallBasics

/// Says when the way to a server has changed.
///
/// The kernel tells much that changes nothing: temporary addresses, bridges of containers, renewals by DHCP. So what counts
/// is only what it answers when it is asked for the way: the same own address by the same interface is no change.
///
/// - When the own address or its interface is gone, the answer counts at once. The kernel tells of it before it has taken
///   the routes away, so it is asked every 5 ms for as long as it still names them.
/// - When there was no way, the answer counts at once.
/// - Else the old way still works, or soon does again, and the answer counts when it has differed for 100 ms.
package struct NetworkJudge: Sendable {
    /// How long another way must be there while the old one may still work.
    package static let settleTime = Duration.milliseconds(100)
    /// How often is asked while the kernel still names a way that is gone.
    package static let lossInterval = Duration.milliseconds(5)

    /// The way as it was told last; nil while there is none.
    package private(set) var path: NetworkPath?
    /// When it has to be handled without messages; nil while there is nothing to wait for.
    package private(set) var deadline: MediaTime?
    private var messageTime: MediaTime?
    private var differenceTime: MediaTime?
    private var lossTime: MediaTime?

    /// Nothing is known: the first look is due.
    package init(at now: MediaTime) { deadline = now }

    /// Takes what the kernel told, or nothing at a deadline.
    ///
    /// - Parameters:
    ///   - messages: What it told; the judge looks at once, and again when it may have done what it told of.
    ///   - now: The present time.
    ///   - answer: Asks the kernel for the way; not called when there is nothing to look at.
    /// - Returns: What has become of the way.
    package mutating func handle(
        _ messages: [RouteMessage],
        at now: MediaTime,
        asking answer: () -> NetworkPath?
    ) -> NetworkChange? {
        if messages.isEmpty {
            guard let deadline, deadline <= now else { return nil }
        } else {
            messageTime = now
            if messages.contains(where: endsPath) { lossTime = now }
        }
        let change = look(answer(), now)
        if let time = messageTime, now - time >= Self.settleTime { messageTime = nil }
        if let time = lossTime, now - time >= Self.settleTime { lossTime = nil }
        deadline = [
            messageTime.map { $0 + Self.settleTime },
            differenceTime.map { $0 + Self.settleTime },
            lossTime.map { _ in now + Self.lossInterval },
        ].compactMap(\.self).min()
        return change
    }

    private mutating func look(_ found: NetworkPath?, _ now: MediaTime) -> NetworkChange? {
        guard let change = NetworkChange(from: path, to: found) else {
            differenceTime = nil
            return nil
        }
        let start = differenceTime ?? now
        guard path == nil || lossTime != nil || now - start >= Self.settleTime else {
            differenceTime = start
            return nil
        }
        path = found
        (differenceTime, lossTime) = (nil, nil)
        return change
    }

    /// Whether nothing can leave any more by the way as it was told last.
    private func endsPath(_ message: RouteMessage) -> Bool {
        guard let path else { return false }
        switch message {
        case .address(let notice):
            let isOwn = notice.interface == path.interface && notice.address == path.source
            return isOwn && (!notice.isAdded || notice.isDuplicate)
        case .link(let notice):
            // Without a cable it may soon be back.
            return notice.interface == path.interface && (notice.isGone || !notice.isUp)
        case .overrun: return true
        case .route, .rule, .refusal: return false
        }
    }
}
