internal import CallBasics
internal import CallCore
internal import Foundation
internal import SharedCore

/// The accounts of a service: how each is registered.
extension SIPService {
    func accounts(of store: SharedStore) async throws -> [GroupAccount] {
        try await store.accounts().map { GroupAccount($0) }.filter { addresses?.contains($0.address) ?? true }
    }

    /// Begins to register an account; what comes of it, events tell.
    ///
    /// One whose secret cannot be read, or waits for a person, holds up no other.
    func register(_ account: GroupAccount, _ phone: Phone) {
        standing[account.address] = .pending
        let known = memories[account.address] ?? []
        let open = rooms.values.filter { $0.account == account.address }.map { ($0.address, $0.subject) }
        Task {
            do {
                let made = try await secrets.complete(account).phoneAccount()
                // It may have been removed meanwhile.
                guard standing[account.address] != nil else { return }
                try await phone.register(made, recalling: known, rooms: open)
            } catch let error as PhoneError {
                // Of all else events tell.
                guard error.code == .invalid else { return }
                await refuse(account.address, error)
            } catch {
                await refuse(account.address, PhoneError(.invalid, "\(error)"))
            }
        }
    }

    /// Tells that an account cannot be registered as it is.
    func refuse(_ address: String, _ error: PhoneError) async {
        // It may have been removed meanwhile.
        guard standing[address] != nil else { return }
        await note(address, .refused, reason: error.message)
        continuation.yield(.unregistered(address, error))
    }

    /// Waits until an account is registered, for what it sends comes from it; a minute at most, for then it is tried again.
    func registered(_ account: String?) async throws {
        guard let account else { return }
        let limit = ContinuousClock.now + .seconds(60)
        while standing[account] == .pending, .now < limit {
            try Task.checkCancellation()
            _ = try running()
            let count = changed.count
            await changed.wait(after: count, until: limit)
        }
        guard let state = standing[account], state != .registered else { return }
        throw PhoneError(.unanswered, "\(account) is not registered. What it sends waits until it is.")
    }

    func note(_ address: String, _ state: Standing, reason: String? = nil) async {
        let former = standing.updateValue(state, forKey: address)
        if state == .registered {
            if former != .registered { context?.retryActions() }
            quietUntil = max(quietUntil, .now + Self.quiet.registration)
        }
        changed.notify()
        if state == .registered { await receipts?.send() }
        guard let context, let store = context.store, let phone else { return }
        let seconds = await phone.bindingSeconds(of: address)
        let registration = StoredRegistration(
            address: address,
            state: state == .registered ? "ok" : state == .refused ? "failed" : "none",
            reason: reason,
            expiresAt: state == .registered ? seconds.map { Date(timeIntervalSinceNow: $0) } : nil,
            isPushServed: await phone.isPushServed(of: address)
        )
        try? await store.set(registration, as: context.epoch)
    }
}
