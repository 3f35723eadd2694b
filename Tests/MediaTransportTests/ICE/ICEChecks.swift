import CallBasics
import TestSupport
import Testing

@testable import MediaTransport
@testable import SDP

/// The controlling side of ICE, as far as this side sees it: its checks.
struct ICEChecks {
    static let own = ICECredentials(userFragment: "ours", password: "password-of-our-own-side")
    static let remote = ICECredentials(userFragment: "abcd", password: "password-of-the-browser")

    /// Of a side that only answers.
    static let agreed = agreed(isFull: false)

    static func agreed(isFull: Bool, controls: Bool = false, _ candidates: [ICECandidate] = []) -> AgreedICE {
        let session = AgreedICE.Session(local: own, remote: remote)
        return AgreedICE(session, isFull: isFull, isControlling: controls, candidates: candidates)
    }

    private var generator = SeededGenerator(seed: 1)

    /// A check as a browser sends it, but for what `change` adds before the signature.
    mutating func check(
        name: String = "ours:abcd",
        password: String = own.password,
        priority: UInt32? = 1,
        nominates: Bool = false,
        _ change: (inout STUNWriter) -> Void = { _ in }
    ) -> [UInt8] {
        var writer = STUNWriter(.request, .binding, STUNMessage.Transaction(using: &generator))
        writer.append(.username, name)
        writer.append(STUNAttribute(rawValue: 0xC057), [0, 1, 0, 10])
        writer.append(.iceControlling, number: 7 as UInt64)
        if nominates { writer.append(.useCandidate, []) }
        if let priority { writer.append(.priority, number: priority) }
        change(&writer)
        writer.sign(with: STUNKey(shortTerm: password))
        return writer.finish(withFingerprint: true)
    }

    /// A check of a side that is controlled.
    static func controlled() -> [UInt8] {
        var generator = SeededGenerator(seed: 9)
        var writer = STUNWriter(.request, .binding, STUNMessage.Transaction(using: &generator))
        writer.append(.username, "ours:abcd")
        writer.append(.iceControlled, number: 7 as UInt64)
        writer.append(.priority, number: 1 as UInt32)
        writer.sign(with: STUNKey(shortTerm: own.password))
        return writer.finish(withFingerprint: true)
    }

    static func address(_ port: UInt16) -> SocketAddress { SocketAddress(ipv4: 0xC000_0202, port: port) }
}
