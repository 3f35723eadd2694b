/// Transactions of received requests that were answered, the first one first; some have ended since.
struct AnsweredQueue: Sendable {
    private var names: [TransactionID] = []
    /// How many of them have left at the front.
    private var leftCount = 0

    var count: Int { names.count - leftCount }

    /// Adds one; when there are more than `limit`, those that have ended leave.
    mutating func append(_ name: TransactionID, limit: Int, isThere: (TransactionID) -> Bool) {
        if count >= limit {
            names = names[leftCount...].filter(isThere)
            leftCount = 0
        }
        names.append(name)
    }

    mutating func popFirst() -> TransactionID? {
        guard leftCount < names.count else { return nil }
        let name = names[leftCount]
        leftCount += 1
        if leftCount == names.count {
            (names, leftCount) = ([], 0)
        } else if leftCount > 1024, leftCount * 2 > names.count {
            names.removeFirst(leftCount)
            leftCount = 0
        }
        return name
    }

    /// Lets those leave that have ended, up to the first that has not.
    mutating func dropEnded(_ isThere: (TransactionID) -> Bool) {
        while leftCount < names.count, !isThere(names[leftCount]) { _ = popFirst() }
    }
}
