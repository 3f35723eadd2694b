package import LocalMessaging

extension MessageServer {
    /// Serves a name that another process may have had until its death, a moment ago: the kernel releases what that held one after the
    /// other.
    ///
    /// Throws: as `start`
    package static func succeed(
        name: String,
        in group: GroupContainer,
        handlers: MessageHandlers,
        clientChanged: @escaping @Sendable (MessageConnection, ClientChange) -> Void
    ) async throws -> MessageServer {
        let deadline = ContinuousClock.now + .milliseconds(500)
        while true {
            do {
                return try await start(name: name, in: group, handlers: handlers, clientChanged: clientChanged)
            } catch let error as ServerError where error.code == .taken && ContinuousClock.now < deadline {
                try await Task.sleep(for: .milliseconds(1))
            }
        }
    }
}
