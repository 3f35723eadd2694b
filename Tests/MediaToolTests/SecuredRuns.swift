import TestSupport
import Testing

/// Secured calls by the tool, and what has to be told of them.
enum SecuredRuns {
    /// What baresip sends in the clear even so: RTCP.
    static let ofBaresip = ["malformed": 4, "unauthentic": 4, "otherKey": 4]
    /// What linphonec sends besides: STUN, RTCP with a shorter tag, and the end of each key three times under one number.
    static let ofLinphone = ["malformed": 100, "unauthentic": 8, "otherKey": 8, "replayed": 8]

    /// Calls with our tone, and writes down what is heard.
    static func call(_ uri: String, _ scratch: Scratch, _ options: [String], srtp: String = "sdes") throws -> ToolRun {
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16000)
        let files = ["--input", scratch.file("tone.wav"), "--output", scratch.file("heard.wav")]
        return try ToolRun(["sip", "call", uri, "--srtp", srtp, "--json", "--events"] + files + options)
    }

    static func answer(_ options: [String], srtp: String = "sdes") throws -> ToolRun {
        try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--srtp", srtp, "--json"] + options)
    }

    /// Checks that the sound was secured, that it flowed, and that nothing was refused but what came before there were keys,
    /// and so many others as `allowed` says by reason.
    static func expectSecured(
        _ run: ToolRun,
        _ suite: String? = nil,
        by srtp: String = "sdes",
        refusing allowed: [String: Int] = [:]
    ) throws {
        let lines = try run.jsonLines()
        let connected = try #require(lines.first { $0["event"] as? String == "connected" })
        #expect(connected["srtp"] as? String == srtp, "\(connected)")
        let report = try #require(lines.last)
        let security = try #require(report["srtp"] as? [String: Any], "\(report)")
        #expect(security["keying"] as? String == srtp, "\(security)")
        if let suite { #expect(security["suite"] as? String == suite) }
        if srtp == "sdes" {
            #expect(connected["suite"] as? String == security["suite"] as? String)
            #expect(security["withheld"] as? Int == 0)
        } else {
            let told = try #require(lines.first { $0["event"] as? String == "secured" }, "\(lines)")
            #expect(told["suite"] as? String == security["suite"] as? String)
            #expect((security["fingerprint"] as? String)?.hasPrefix("sha-256 ") == true, "\(security)")
        }
        #expect(security["unsent"] as? Int == 0, "\(security)")
        let refused = try #require(security["refused"] as? [String: Int])
        #expect(
            refused.count == 6 && refused.allSatisfy { $1 <= allowed[$0] ?? ($0 == "early" ? 10 : 0) },
            "\(security)"
        )
        let leg = try #require((report["legs"] as? [[String: Any]])?.first)
        let received = try #require(leg["received"] as? [String: Any])
        #expect(try #require(received["packets"] as? Int) > 20 && received["lost"] as? Int == 0, "\(received)")
    }
}
