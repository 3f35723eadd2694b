/// What runs in a group, for people to read.
///
/// It is no permission: that is the lock. It is made of what the owner of the lock says of itself (`OwnerRecord`), so it dies
/// with the owner. A core for calls counts as an executor.
public enum CoreState: String, Codable, Hashable, Sendable, CaseIterable {
    /// No core runs.
    case free
    /// A main core runs.
    case main
    /// An executor core runs, or one for calls.
    case executor
    /// It was asked to give way, and ends its work.
    case executorStopping
}

/// What runs in the group.
public struct CoreStatus: Hashable, Sendable {
    /// The state.
    public let state: CoreState
    /// Who holds the lock, also before its epoch has begun; nil when nobody does, or who does has not said who it is.
    public let owner: OwnerRecord?
    /// The epoch that began last.
    public let epoch: Epoch

    init(owner: OwnerRecord?, fence: Fence) {
        (self.owner, epoch) = (owner, fence.epoch)
        guard let owner, fence.isOpen, owner.epoch == fence.epoch else {
            state = .free
            return
        }
        state =
            switch owner.role {
            case .main: .main
            case .executor, .call: owner.isStopping ? .executorStopping : .executor
            }
    }
}
