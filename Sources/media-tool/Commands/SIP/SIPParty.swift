import CallBasics
import CallCore
import SIP
import SIPTransport

/// An agent of the tool with its sockets.
struct SIPParty {
    let endpoint: SIPEndpoint<UserAgent>
    let local: SocketAddress
    let account: AccountHandle?
    let user: SIPUser?
    /// Whom its own address leads to; nil where that was given.
    let peer: SocketAddress?
    /// Where calls have their sound, as far as it does not depend on who calls.
    let mediaHost: String
    /// Where it listens, as scripts are told.
    let addresses: [String]
    let trace: SIPTrace?

    /// The address of the account; nil without one.
    var address: String? { user.map { "\($0.account.identity.uri)" } }

    static func text(_ transport: Flow.Transport, _ address: SocketAddress) -> String {
        "\(transport.name)".lowercased() + " \(address)"
    }

    /// Takes the account's binding away, unless the next core of a group goes on with it, and closes the sockets.
    func close() async {
        let isKept = user?.isOfGroup ?? false
        await endpoint.close(afterUnregistering: isKept ? [] : [account].compactMap(\.self))
        await finish()
    }

    /// Closes the sockets; the binding stays.
    func leave() async {
        await endpoint.close()
        await finish()
    }

    private func finish() async {
        trace?.close()
        await user?.leave()
    }
}
