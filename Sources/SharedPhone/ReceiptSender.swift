internal import CallCore
internal import SharedCore

/// Sends the receipts that wait in the store of a group, one after the other; those that cannot be sent now wait on.
actor ReceiptSender {
    private let phone: Phone
    private let store: SharedStore
    private let epoch: Epoch
    private let isUsable: @Sendable (String?) async -> Bool
    /// Notifies when what was begun has ended.
    private let ended = Notifier()
    private var last: Task<Void, Never>?
    /// How many have not ended.
    private var count = 0

    /// `isUsable` says whether an account can send; nil is for none.
    init(
        _ phone: Phone,
        _ store: SharedStore,
        as epoch: Epoch,
        isUsable: @escaping @Sendable (String?) async -> Bool
    ) {
        (self.phone, self.store, self.epoch, self.isUsable) = (phone, store, epoch, isUsable)
    }

    /// Begins to send what waits, behind what is being sent.
    @discardableResult
    func send() -> Task<Void, Never> {
        let former = last
        count += 1
        let task = Task {
            await former?.value
            for receipt in (try? await store.receipts()) ?? [] {
                guard await isUsable(receipt.account), await isDone(receipt) else { continue }
                try? await store.finish(receipt, as: epoch)
            }
            count -= 1
            ended.notify()
        }
        last = task
        return task
    }

    /// Waits until nothing is being sent, for so long at most.
    func wait(_ duration: Duration) async {
        let limit = ContinuousClock.now + duration
        while count > 0, .now < limit {
            let former = ended.count
            await ended.wait(after: former, until: limit)
        }
    }

    /// Sends a receipt; whether it is done with: taken, or wanted no more.
    private func isDone(_ receipt: MessageReceipt) async -> Bool {
        do {
            try await phone.sendReceipt(
                receipt.kind == .displayed ? .displayed : .delivered,
                of: receipt.messageID,
                to: receipt.recipient,
                from: receipt.account
            )
            return true
        } catch let error as PhoneError {
            return error.isFinal
        } catch {
            return false
        }
    }
}
