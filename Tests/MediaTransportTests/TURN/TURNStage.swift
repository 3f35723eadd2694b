import CallBasics
import TestSupport

@testable import MediaTransport

/// An allocation, and the server that answers it at once.
struct TURNStage {
    static let server = SocketAddress(ipv4: 0xC633_6401, port: 3478)
    static let own = SocketAddress(ipv4: 0xCB00_7101, port: 5000)

    var allocation: TURNAllocation
    var server = RelayServer(at: Self.server)
    var now = MediaTime.zero
    /// What has come for peers.
    var passedOn: [RelayServer.Datagram] = []

    init(password: String = RelayServer.password, by carrier: TestCarrier? = nil) {
        allocation = TURNAllocation(
            at: Self.server,
            by: carrier,
            user: RelayServer.user,
            password: password,
            SeededGenerator(seed: 3),
            at: now
        )
    }

    /// Lets time go by, and both talk.
    mutating func run(_ pause: Duration = .zero) {
        let end = now + pause
        while true {
            exchange()
            guard let next = allocation.next, next <= end else { break }
            now = max(now, next)
        }
        now = end
        exchange()
    }

    private mutating func exchange() {
        allocation.advance(to: now)
        for _ in 0..<10 {
            for (bytes, destination) in allocation.takeDatagrams() { deliver(bytes, to: destination) }
        }
    }

    private mutating func deliver(_ bytes: [UInt8], to destination: SocketAddress) {
        for datagram in server.take(bytes, from: Self.own, to: destination, at: now) {
            if datagram.destination == Self.own {
                _ = allocation.take(datagram.bytes, at: now)
            } else {
                passedOn.append(datagram)
            }
        }
    }

    /// What the allocation makes of what a peer sends to its relayed address.
    mutating func hear(_ bytes: [UInt8], from peer: SocketAddress) -> (bytes: [UInt8], peer: SocketAddress)? {
        guard let relayed = allocation.relayed else { return nil }
        let sent = server.take(bytes, from: peer, to: relayed, at: now)
        return sent.first.flatMap { allocation.take($0.bytes, at: now) }
    }

    func count(_ method: STUNMessage.Method) -> Int { server.asked.count { $0 == method } }
}
