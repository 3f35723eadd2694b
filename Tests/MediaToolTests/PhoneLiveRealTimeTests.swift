import Foundation
import Glibc
import TestSupport
import Testing

/// `media-tool phone` behind Kamailio, with baresip and linphonec as the others.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(
        if: KamailioRun.isThere && BaresipRun.program != nil,
        "needs Kamailio and baresip (Debian: kamailio, kamailio-tls-modules, baresip-core)"
    )
)
struct PhoneLiveRealTimeTests {
    private let folder: Scratch
    private let kamailio: KamailioRun

    init() throws {
        folder = try Scratch()
        kamailio = try KamailioRun()
    }

    /// Alice's phone, which is registered.
    private func phone() throws -> PhoneRun {
        let password = folder.file("alice")
        try "alice-secret".write(toFile: password, atomically: true, encoding: .utf8)
        chmod(password, 0o600)
        let phone = try PhoneRun(
            folder,
            "--account",
            "sip:alice@example.test",
            "--password-file",
            password,
            "--proxy",
            "sip:\(kamailio.address);lr",
            "--transport",
            "udp"
        )
        try #require(kamailio.prints("saved alice 3600"), "\(phone.run.errors)")
        return phone
    }

    /// Somebody of the domain who answers calls by the tool.
    private func answering(_ user: String, _ options: String...) throws -> ToolRun {
        let account = try kamailio.account(user, by: "udp")
        let run = try ToolRun(["sip", "answer", "--calls", "1", "--json"] + account + options)
        try #require(run.printed(#""event":"registered""#), "\(run.errors)")
        return run
    }

    private func connected(_ phone: PhoneRun, _ count: Int) -> Bool {
        phone.prints { $0.components(separatedBy: #""stage":"connected""#).count > count }
    }

    @Test func `baresip is called, held, lost with the network and found again, handed on, and calls back`() throws {
        let baresip = try BaresipRun(at: kamailio.address)
        let phone = try phone()
        try phone.say("call sip:bob@example.test")
        try #require(connected(phone, 1), "\(phone.run.output)\(baresip.output)")
        let first = try #require(try phone.received(moreThan: 10))
        try phone.say(#"{"action":"setHeld","held":true,"id":1}"#)
        #expect(phone.prints(#""event":"performed","id":1,"result":"fulfilled""#))
        try phone.say(#"{"action":"setHeld","held":false,"id":2}"#)
        #expect(phone.prints(#""event":"performed","id":2,"result":"fulfilled""#))

        // The call outlives the network.
        try phone.say("network off")
        #expect(phone.prints("There is no network"), "\(phone.run.output)")
        let former = kamailio.output.components(separatedBy: "saved alice 3600").count
        try phone.say("network on")
        let isBack = ProgramRun.wait { kamailio.output.components(separatedBy: "saved alice 3600").count > former }
        #expect(isBack, "\(kamailio.output)")
        #expect(try phone.received(moreThan: first + 20) != nil, "\(phone.run.output)")
        try phone.say("keys 5")
        #expect(ProgramRun.wait { baresip.keys == "5" }, "\(baresip.output)")

        // Dave takes it over.
        let dave = try answering("dave", "--echo")
        try phone.say("transfer sip:dave@example.test")
        #expect(dave.printed(#""event":"connected""#), "\(phone.run.output)\(baresip.output)")
        #expect(phone.prints(#""event":"report""#), "\(phone.run.output)")
        #expect(baresip.records(.seconds(1), ofCall: 2), "\(baresip.output)")
        try baresip.command("hangup")
        #expect(dave.wait() == 0, "\(dave.errors)")

        try baresip.command("dial", "sip:alice@example.test")
        try #require(phone.prints(#""event":"incoming""#), "\(baresip.output)")
        try phone.say("answer")
        #expect(try phone.received(moreThan: 10) != nil, "\(phone.run.output)")
        try phone.say("quit")
        #expect(phone.ends() == 0, "\(phone.run.errors)")
        #expect(kamailio.prints("saved alice 0"))
        #expect(baresip.prints("session closed") || baresip.prints("terminated (duration"), "\(baresip.output)")
    }

    @Test func `baresip hears who else is in the conference`() throws {
        let baresip = try BaresipRun(at: kamailio.address)
        try Tone.ours.write(to: folder.file("tone.wav"), rate: 16000)
        let carol = try answering("carol", "--input", folder.file("tone.wav"), "--output", folder.file("heard.wav"))
        try confer(with: baresip) { phone in
            try phone.say("quit")
            #expect(phone.ends() == 0, "\(phone.run.errors)")
            #expect(carol.wait() == 0, "\(carol.errors)")
        }
        #expect(try Tone.ours.tenths(of: baresip.endedRecording()).count { $0 } >= 3)
        #expect(try Tone.baresip.tenths(of: folder.file("heard.wav")).count { $0 } >= 3)
    }

    @Test(.enabled(if: LinphoneRun.program != nil, "needs linphonec (Debian: linphone-cli)"))
    func `baresip and linphonec hear each other in the conference`() throws {
        let baresip = try BaresipRun(at: kamailio.address)
        let linphone = try LinphoneRun(at: kamailio.address)
        try #require(kamailio.prints("saved carol"), "\(linphone.output)")
        try confer(with: baresip) { phone in
            try phone.say("quit")
            #expect(phone.ends() == 0, "\(phone.run.errors)")
        }
        #expect(try Tone.linphone.tenths(of: baresip.endedRecording()).count { $0 } >= 3)
        #expect(try linphone.heard(.baresip) >= 3)
    }

    /// Alice has Bob and Carol in a conference for 2 s; `end` ends it.
    private func confer(with baresip: BaresipRun, _ end: (PhoneRun) throws -> Void) throws {
        let phone = try phone()
        // baresip plays nothing any more to its file once it was held: it comes second.
        try phone.say("call sip:carol@example.test")
        try #require(connected(phone, 1), "\(phone.run.output)\(kamailio.output)")
        try phone.say("call sip:bob@example.test")
        try #require(connected(phone, 2), "\(phone.run.output)\(baresip.output)")
        try phone.say(#"{"action":"setGroup","call":1,"with":2,"id":1}"#)
        #expect(phone.prints(#""event":"performed","id":1,"result":"fulfilled""#), "\(phone.run.output)")
        #expect(baresip.records(.seconds(3), ofCall: 1), "\(baresip.output)")
        try end(phone)
    }
}
