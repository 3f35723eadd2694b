// A test harness for calls: two endpoints in one process, over real sockets and over a simulated network.
//
// Over UDP the call takes as long as in life. In virtual time, whose clock only `advance` moves, twenty seconds of call
// take a fraction of one, the network is as bad as the test wishes, and the same seed gives the same packets, samples
// and counters on every run: a failure is found again by its seed.
import Foundation
import MediaEngine

/// Ends the program when `condition` does not hold, as a test would.
func check(_ condition: Bool, _ claim: String) {
    print(condition ? "ok      \(claim)" : "FAILED  \(claim)")
    if !condition { exit(1) }
}

/// One end of a call: it sends a test signal, and what it receives is decoded, measured and dropped.
func end(_ name: String, _ network: CallNetwork, seconds: Double) -> CallConfiguration {
    let format = AudioFormat(sampleRate: 48000)
    var configuration = CallConfiguration(network: network)
    configuration.name = name
    configuration.agreement.codec = "opus"
    configuration.source = .samples(TestSignal.samples(seconds, format), format)
    configuration.sink = .none
    return configuration
}

/// One second over the loopback interface.
///
/// B knows no address: it answers to where packets come from (RFC 4961).
func callOverUDP() async throws {
    let engine = try CallEngine()
    let b = try await engine.makeCall(end("B", .udp(local: .loopback(port: 0)), seconds: 1))
    var calling = end("A", .udp(local: .loopback(port: 0)), seconds: 1)
    calling.agreement.remote = b.localAddress
    let a = try await engine.makeCall(calling)
    try a.sendDTMF("42")
    try await Task.sleep(for: .seconds(1))
    let (near, far) = (a.report(hearing: b), b.report(hearing: a))
    check(far.received.packets > 30, "udp: B receives A (\(far.received.packets) packets)")
    check(near.received.packets > 20, "udp: A receives B by symmetric RTP (\(near.received.packets) packets)")
    check(far.received.lost == 0, "udp: nothing is lost")
    check(far.dtmf == "42", "udp: both keys arrive (\(far.dtmf))")
    await engine.shutDown()
}

/// Twenty seconds over a network that loses 5 % of what B should receive, in bursts, with 30 ms of jitter.
func callInVirtualTime(seed: UInt64) async throws -> LegReport {
    let engine = try CallEngine(.virtual(seed: seed))
    let (left, right) = MemoryLink.pair()
    var calling = end("A", .link(left, local: left.localAddress), seconds: 20)
    calling.agreement.remote = right.localAddress
    var answering = end("B", .link(right, local: right.localAddress), seconds: 20)
    answering.agreement.remote = left.localAddress
    answering.impairment.lossPercent = 5
    answering.impairment.burstLength = 1.5
    answering.impairment.jitter = .milliseconds(30)
    let calls = try await engine.makeCalls([calling, answering])  // both begin in the same tick
    try calls[0].sendDTMF("159#")
    try engine.advance(by: .seconds(20))
    let report = calls[1].report(hearing: calls[0])
    await engine.shutDown()
    return report
}

try await callOverUDP()
let clock = ContinuousClock()
let start = clock.now
let report = try await callInVirtualTime(seed: 7)
let elapsed = start.duration(to: clock.now)
let lost = report.received.lost
check(lost > 20 && lost < 100, "virtual: \(lost) of 1000 packets are lost")
check(report.received.fecRecovered > 0, "virtual: FEC recovers \(report.received.fecRecovered) of them")
check(report.dtmf == "159#", "virtual: every key arrives once all the same (\(report.dtmf))")
check((report.mouthToEarMs ?? 1000) < 150, "virtual: mouth to ear takes \(report.mouthToEarMs ?? 0) ms")
check(try await callInVirtualTime(seed: 7) == report, "virtual: the same seed gives the same report")
print("20 s of call took \((elapsed / .milliseconds(10)).rounded() / 100) s")
