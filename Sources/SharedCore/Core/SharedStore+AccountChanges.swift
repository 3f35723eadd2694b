internal import CallBasics
public import LocalMessaging

extension SharedStore {
    /// Adds an account, or changes the one of the same address: through the core that runs in the group, which uses it at once,
    /// or without one.
    ///
    /// - Throws: `StoreError`, `LockError`; `MessagingError` or `Invalidation` when the core that runs cannot do it
    public func setAccount(_ account: StoredAccount, in group: GroupContainer) async throws {
        try await change(AccountChange(address: account.address, account: account), in: group)
    }

    /// Removes an account: through the core that runs in the group, or without one.
    ///
    /// - Throws: as `setAccount`
    public func removeAccount(address: String, in group: GroupContainer) async throws {
        try await change(AccountChange(address: address, account: nil), in: group)
    }

    private func change(_ change: AccountChange, in group: GroupContainer) async throws {
        let lock = try CoreLock(group: group)
        let deadline = ContinuousClock.now + .seconds(5)
        while try !lock.tryLock(.writer) {
            do {
                let client = try await MessageClient.connect(to: coreServerName, in: group)
                let result = await Result(catching: { try await client.request(change, timeout: .seconds(5)) })
                await client.close()
                _ = try result.get()
                return
            } catch  where Self.isOfConnection(error) && .now < deadline {
                // It may have begun or ended this very moment.
                try await Task.sleep(for: .milliseconds(10))
            }
        }
        defer { lock.unlock(.writer) }
        try lock.write(
            OwnerRecord(process: .current, role: .executor, epoch: Epoch(rawValue: 0), why: "an account is changed")
        )
        let epoch = try await beginEpoch()
        do {
            try await apply(change, as: epoch)
        } catch {
            try? await endEpoch(epoch)
            throw error
        }
        try await endEpoch(epoch)
    }

    func apply(_ change: AccountChange, as epoch: Epoch) async throws(StoreError) {
        guard let account = change.account else {
            try await removeAccount(address: change.address, as: epoch)
            return try await removeRegistration(address: change.address, as: epoch)
        }
        try await setAccount(account, as: epoch)
    }

    /// Whether there is no connection, or not any more.
    private static func isOfConnection(_ error: any Error) -> Bool {
        if case .invalidated? = error as? MessagingError { true } else { error is Invalidation }
    }
}

extension Result where Failure == any Error {
    fileprivate init(catching body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
