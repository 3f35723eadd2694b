internal import CallBasics
package import SIP
package import SIPTransport

extension SIPEndpoint where Element == UserAgent {
    /// Takes the bindings of accounts away, waits until what was sent last has its answers, a second at most, and closes
    /// the sockets.
    package func close(afterUnregistering accounts: [AccountHandle]) async {
        perform { agent, now in for account in accounts { agent.unregister(account, at: now) } }
        let end = Self.now + .seconds(1)
        while perform({ agent, _ in agent.openRequestCount }) > 0, Self.now < end {
            try? await Task.sleep(for: .milliseconds(5))
        }
        await close()
    }

    /// Lets the agent do something in the turn of an actor that shares its event loop.
    nonisolated func inTurn<Result: Sendable, E: Error>(
        _ body: @Sendable (inout UserAgent, MediaTime) throws(E) -> Result
    ) throws(E) -> Result {
        let outcome: Swift.Result<Result, E> = assumeIsolated { endpoint in
            endpoint.perform { agent, now in
                do throws(E) { return .success(try body(&agent, now)) } catch { return .failure(error) }
            }
        }
        return try outcome.get()
    }
}
