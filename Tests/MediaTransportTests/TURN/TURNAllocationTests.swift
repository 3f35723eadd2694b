import CallBasics
import TestSupport
import Testing

@testable import MediaTransport

/// Addresses at a relay: how they are asked for, kept and given back; time is an argument.
@Suite(.tags(.rfc)) struct TURNAllocationTests {
    private typealias Stage = TURNStage
    private static let (server, own) = (Stage.server, Stage.own)
    private static let peer = SocketAddress(ipv4: 0xCB00_7102, port: 6000)

    private static func allocated() -> Stage {
        var stage = Stage()
        stage.run()
        return stage
    }

    // MARK: To get one

    @Test func `an address is given to a user who proves the password`() {
        let stage = Self.allocated()
        #expect(stage.allocation.relayed == Self.server.with(port: 50_001) && stage.allocation.mapped == Self.own)
        #expect(stage.count(.allocate) == 2 && stage.allocation.failure == nil)
    }

    @Test func `a wrong password is told, and not tried again`() {
        var stage = Stage(password: "another")
        stage.run(.seconds(60))
        #expect(stage.allocation.failure == .unauthorized && stage.count(.allocate) == 2)
    }

    @Test func `a server that is silent is asked seven times, and given up`() {
        var allocation = Stage().allocation
        var times: [Int64] = []
        var now = MediaTime.zero
        while let next = allocation.next {
            times += allocation.takeDatagrams().map { _ in now.nanoseconds / 1_000_000 }
            now = next
            allocation.advance(to: now)
        }
        #expect(times == [0, 150, 450, 1050, 2250, 4650, 9450] && allocation.failure == .silent)
    }

    private static func refusal(
        of request: [UInt8],
        _ code: Int,
        _ change: (inout STUNWriter) -> Void = { _ in }
    ) throws -> [UInt8] {
        let request = try #require(STUNMessage(parsing: request))
        var writer = STUNWriter(.failure, request.method, request.transaction)
        writer.append(errorCode: code, reason: "No")
        change(&writer)
        return writer.finish(withFingerprint: false)
    }

    @Test(arguments: [403, 437, 441, 442, 486, 508]) func `a refusal is told`(code: Int) throws {
        var allocation = Stage().allocation
        let asked = allocation.takeDatagrams()[0]
        _ = allocation.take(try Self.refusal(of: asked.bytes, code), at: .zero)
        #expect(allocation.failure == .refused(code: code, reason: "No") && allocation.next == nil)
    }

    @Test func `other servers are asked that one names, three at most and none twice`() throws {
        var allocation = Stage().allocation
        var visited: [UInt16] = []
        for port in 1...9 as ClosedRange<UInt16> {
            guard let asked = allocation.takeDatagrams().last else { break }
            visited.append(asked.destination.port)
            let refusal = try Self.refusal(of: asked.bytes, 300) {
                $0.append(.alternateServer, Self.server.with(port: port))
            }
            _ = allocation.take(refusal, at: .zero)
        }
        #expect(visited == [3478, 1, 2, 3] && allocation.failure == .refused(code: 300, reason: "No"))

        allocation = Stage().allocation
        let asked = allocation.takeDatagrams()[0]
        _ = allocation.take(
            try Self.refusal(of: asked.bytes, 300) { $0.append(.alternateServer, Self.server) },
            at: .zero
        )
        #expect(allocation.failure != nil)
    }

    // MARK: Peers

    @Test func `what is sent before a peer may be reached waits for that, as do four at most`() {
        var stage = Self.allocated()
        for number in 0..<9 as Range<UInt8> { stage.allocation.send([number], to: Self.peer, at: stage.now) }
        stage.run()
        #expect(stage.passedOn.map(\.bytes) == [[0], [1], [2], [3]])
        #expect(stage.passedOn.allSatisfy { $0.destination == Self.peer && $0.source == stage.allocation.relayed })
        let heard = stage.hear([7, 8], from: Self.peer.with(port: 9))
        #expect(heard?.bytes == [7, 8] && heard?.peer == Self.peer.with(port: 9))
    }

    @Test func `a peer that nobody has told of is not heard`() {
        var stage = Self.allocated()
        let heard = stage.hear([1], from: Self.peer)
        #expect(heard == nil)
    }

    @Test func `a channel takes four bytes, both ways`() {
        var stage = Self.allocated()
        stage.allocation.bind(Self.peer, at: stage.now)
        #expect(stage.allocation.channel(of: Self.peer) == nil)
        stage.run()
        #expect(stage.allocation.channel(of: Self.peer) == 0x4000)
        stage.allocation.send([1, 2, 3], to: Self.peer, at: stage.now)
        #expect(stage.allocation.takeDatagrams().map(\.bytes) == [[0x40, 0, 0, 3, 1, 2, 3]])
        let heard = stage.hear([4, 5], from: Self.peer)
        #expect(heard?.bytes == [4, 5] && heard?.peer == Self.peer)
        let unknown = stage.allocation.take([0x40, 1, 0, 1, 9], at: stage.now)
        #expect(unknown == nil)
    }

    @Test func `hosts are 32 at most`() {
        var stage = Self.allocated()
        for number in 1...100 as ClosedRange<UInt32> {
            stage.allocation.permit(SocketAddress(ipv4: 0xCB00_7200 + number, port: 1), at: stage.now)
        }
        for _ in 0..<10 { stage.run() }
        #expect(stage.count(.createPermission) == 32)
    }

    // MARK: To keep it, and to give it back

    @Test func `it is refreshed, with who may send, before the server forgets it`() {
        var stage = Self.allocated()
        stage.allocation.bind(Self.peer, at: stage.now)
        stage.allocation.permit(Self.peer.with(port: 1), at: stage.now)
        for _ in 0..<60 {
            stage.run(.seconds(60))
            let heard = stage.hear([1], from: Self.peer)
            #expect(heard?.bytes == [1])
        }
        // After 540 s each; hosts after 240 s, too, unless a channel has just renewed them.
        let counts = [.refresh, .createPermission, .channelBind].map(stage.count)
        #expect(counts == [6, 14, 7])
    }

    @Test func `an old nonce is no failure, however often`() {
        var stage = Self.allocated()
        stage.server.nonceLife = 1
        for port in 1...40 as ClosedRange<UInt16> {
            stage.allocation.bind(Self.peer.with(port: port), at: stage.now)
        }
        stage.run(.seconds(7200))
        #expect(stage.server.staleCount > 100 && stage.allocation.failure == nil)
        #expect(stage.allocation.channel(of: Self.peer.with(port: 40)) == 0x4027)
        let heard = stage.hear([1], from: Self.peer)
        #expect(heard?.bytes == [1])
    }

    @Test func `one that the server has forgotten is gone`() {
        var stage = Self.allocated()
        stage.server = RelayServer(at: Self.server)
        stage.run(.seconds(600))
        #expect(
            stage.allocation.relayed == nil
                && stage.allocation.failure == .refused(code: 437, reason: "Allocation Mismatch")
        )
        #expect(stage.allocation.next == nil)
    }

    @Test func `it is given back at the end`() {
        var stage = Self.allocated()
        #expect(stage.server.clientCount == 1)
        stage.allocation.close(at: stage.now)
        stage.run()
        #expect(stage.server.clientCount == 0 && stage.allocation.relayed == nil && stage.allocation.next == nil)
    }

    @Test func `a relay that refuses a channel is gone, since no sound gets through`() {
        var stage = Self.allocated()
        stage.server.refused = [.channelBind]
        stage.allocation.bind(Self.peer, at: stage.now)
        stage.run()
        #expect(stage.allocation.failure == .refused(code: 500, reason: "Server Error"))
        #expect(stage.allocation.relayed == nil && stage.server.clientCount == 0)
    }

    @Test func `a channel that is refused when it is not wanted any more ends nothing`() {
        var stage = Self.allocated()
        stage.allocation.bind(Self.peer, at: stage.now)
        let asked = stage.allocation.takeDatagrams()
        stage.allocation.bind(Self.peer.with(port: 7), at: stage.now)
        stage.run()
        stage.server.refused = [.channelBind]
        for (bytes, destination) in asked {
            for answer in stage.server.take(bytes, from: Self.own, to: destination, at: stage.now) {
                _ = stage.allocation.take(answer.bytes, at: stage.now)
            }
        }
        #expect(stage.allocation.relayed != nil && stage.allocation.channel(of: Self.peer) == nil)
        #expect(stage.allocation.channel(of: Self.peer.with(port: 7)) == 0x4001)
    }

    @Test func `a host that is refused is not sent to, and others are`() {
        var stage = Self.allocated()
        stage.server.refused = [.createPermission]
        stage.allocation.send([1], to: Self.peer, at: stage.now)
        stage.run()
        stage.server.refused = []
        stage.allocation.send([2], to: Self.peer, at: stage.now)
        stage.allocation.send([3], to: Self.own.with(port: 9), at: stage.now)
        stage.run()
        #expect(stage.passedOn.map(\.bytes) == [[3]] && stage.allocation.failure == nil)
    }

    @Test func `what the server has given it is asked for again soon where it refuses to renew that`() {
        var stage = Self.allocated()
        stage.allocation.bind(Self.peer, at: stage.now)
        stage.run(.seconds(530))
        stage.server.refused = [.channelBind, .createPermission]
        stage.run(.seconds(20))
        #expect(stage.allocation.channel(of: Self.peer) == 0x4000)
        stage.server.refused = []
        for _ in 0..<20 {
            stage.run(.seconds(60))
            let heard = stage.hear([1], from: Self.peer)
            #expect(heard?.bytes == [1])
        }
    }

    @Test func `a channel that is not used is forgotten`() {
        var stage = Self.allocated()
        stage.allocation.bind(Self.peer, at: stage.now)
        stage.run()
        stage.allocation.bind(Self.peer.with(port: 7), at: stage.now)
        stage.run(.seconds(3600))
        #expect(stage.allocation.channel(of: Self.peer) == nil)
        #expect(stage.allocation.channel(of: Self.peer.with(port: 7)) == 0x4001)
    }

    @Test func `one that nobody has refreshed is gone`() {
        var stage = Self.allocated()
        stage.allocation.lapse(at: .zero + .seconds(599))
        #expect(stage.allocation.relayed != nil)
        stage.allocation.lapse(at: .zero + .seconds(600))
        #expect(stage.allocation.relayed == nil)
    }

    @Test func `it is given back again where the server wants another nonce for that`() {
        var stage = Self.allocated()
        stage.server.nonceLife = 1
        stage.allocation.close(at: stage.now)
        #expect(!stage.allocation.isReleased)
        stage.run()
        #expect(stage.server.clientCount == 0 && stage.allocation.isReleased && stage.server.staleCount == 1)
    }

    // MARK: Hostile servers

    @Test func `an answer that is not signed as it must be is none`() throws {
        var allocation = Stage().allocation
        let challenge = try Self.refusal(of: allocation.takeDatagrams()[0].bytes, 401) {
            $0.append(.realm, "example.test")
            $0.append(.nonce, "1")
        }
        _ = allocation.take(challenge, at: .zero)
        let asked = try #require(allocation.takeDatagrams().first.flatMap { STUNMessage(parsing: $0.bytes) })
        for password in [nil, "another"] {
            var writer = STUNWriter(.success, .allocate, asked.transaction)
            writer.append(.xorRelayedAddress, Self.server.with(port: 50_001))
            if let password {
                writer.sign(with: STUNKey(user: RelayServer.user, realm: "example.test", password: password))
            }
            _ = allocation.take(writer.finish(withFingerprint: false), at: .zero)
        }
        #expect(allocation.relayed == nil && allocation.isPending)
    }

    @Test func `whatever a server sends, and wherever it ends, nothing breaks`() throws {
        var stage = Self.allocated()
        stage.allocation.bind(Self.peer, at: stage.now)
        stage.run()
        var writer = STUNWriter(.indication, .data, STUNMessage.Transaction(high: 1, low: 2))
        writer.append(.xorPeerAddress, Self.peer)
        writer.append(.data, [1, 2, 3, 4])
        let whole = [writer.finish(withFingerprint: false), [0x40, 0, 0, 4, 1, 2, 3, 4]]
        for datagram in whole {
            for count in 0..<datagram.count {
                let heard = stage.allocation.take(Array(datagram[..<count]), at: stage.now)
                #expect(heard == nil)
            }
            let heard = stage.allocation.take(datagram, at: stage.now)
            #expect(heard?.bytes == [1, 2, 3, 4])
        }
        stage.allocation.send([1], to: Self.own.with(port: 9), at: stage.now)
        let asked = try #require(stage.allocation.takeDatagrams().first)
        let answers = stage.server.take(asked.bytes, from: Self.own, to: Self.server, at: stage.now).map(\.bytes)
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<20_000 {
            var datagram = try #require((whole + answers).randomElement(using: &generator))
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                datagram[Int.random(in: datagram.indices, using: &generator)] = UInt8.random(
                    in: 0...255,
                    using: &generator
                )
            }
            _ = stage.allocation.take(datagram, at: stage.now)
        }
        // Nothing that is not signed has ended it.
        #expect(stage.allocation.relayed != nil && stage.allocation.failure == nil)
    }
}
