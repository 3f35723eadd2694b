@testable import MediaEngine
import TestSupport
import Testing

/// A stream at a real socket that others send to, too.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct RTPReceiveFilterRealTimeTests {
    @Test(arguments: thorough([false, true], quick: [true]))
    func `20,000 foreign packets a second change nothing, and cost at most 1 % of the real ones`(isBehindNAT: Bool)
        throws
    {
        let (receiver, peer) = (try UDPSocket(bind: .loopback(port: 0)), try UDPSocket(bind: .loopback(port: 0)))
        // Another host: before the lock, another port of the named one might be a NAT's.
        let stranger = try UDPSocket(bind: try #require(SocketAddress(host: "127.0.0.2", port: 0)))
        let named = isBehindNAT ? peer.localAddress.with(port: 9) : peer.localAddress
        let rig = try ReceiveRig(named: named, over: receiver)
        let driver = TimerDriver(rig.runner)
        try driver.start()
        let count = 150
        for number in 0..<count {
            peer.send(ReceiveRig.packet(number, ssrc: 1).span, to: receiver.localAddress, at: .zero)
            // Its SSRC and its next numbers, and goodbye in its name.
            for index in 0..<400 {
                let bytes = index % 8 == 0 ? ReceiveRig.goodbye(1) : ReceiveRig.packet(number + index % 3, ssrc: 1)
                stranger.send(bytes.span, to: receiver.localAddress, at: .zero)
            }
            pass(.milliseconds(20))
        }
        driver.stop()
        // What still waits at the socket is taken by hand: ten ticks take more than was ever sent at once.
        let end = MonotonicClock.current
        for tick in 0..<10 { rig.runner.tick(at: end + .milliseconds(tick * 10)) }
        var goodbyes = 0
        rig.runner.drainEvents(of: rig.filter) { if case .goodbye = $0 { goodbyes += 1 } }
        let statistics = rig.session.statistics
        #expect(rig.sink.headers.count >= count * 99 / 100, "\(rig.sink.headers.count)")
        #expect(statistics.remoteSSRC == 1 && statistics.sourceChangeCount == 0 && goodbyes == 0)
        #expect(rig.session.destination == peer.localAddress)
    }
}
