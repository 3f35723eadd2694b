import CallBasics
import Testing

@testable import SIP

/// Sessions that end when nobody refreshes them.
@Suite struct SessionTimerTests {
    typealias Wishes = SessionTimer.Wishes

    // RFC 4028, section 9, table 2.
    @Test(
        arguments: [
            (["Supported: timer", "Session-Expires: 1800"], "1800;refresher=uac", false),
            (["Supported: timer", "Session-Expires: 1800;refresher=uas"], "1800;refresher=uas", true),
            (["Supported: timer", "Session-Expires: 1800;refresher=uac"], "1800;refresher=uac", false),
            (["Session-Expires: 1800;refresher=uac"], "1800;refresher=uas", true),
            (["Supported: timer"], "600;refresher=uac", false), ([], "600;refresher=uas", true),
            (["Supported: timer", "Session-Expires: 300"], "300;refresher=uac", false),
            (["Supported: timer", "Session-Expires: 3600", "Min-SE: 900"], "900;refresher=uac", false),
        ]
    )
    func `who answers says how long and who refreshes`(headers: [String], told: String, isRefresher: Bool) throws {
        var wishes = Wishes(seconds: 600)
        if told.hasPrefix("1800") { wishes.seconds = nil }
        var request = try Calls.invite()
        for header in headers {
            let colon = try #require(header.firstIndex(of: ":"))
            try request.append(named: String(header[..<colon]), String(header[header.index(colon, offsetBy: 2)...]))
        }
        var response = try Calls.response(200)
        let timer = try #require(try SessionTimer(server: request, in: &response, wishes, at: .zero))
        #expect(response.values(named: "Session-Expires") == [told] && timer.isRefresher == isRefresher)
        #expect(response.values(named: "Require") == (headers.contains("Supported: timer") ? ["timer"] : []))
        // The caller understands the same.
        let other = try #require(try SessionTimer(client: response, at: .zero))
        #expect(other.seconds == timer.seconds && other.isRefresher != timer.isRefresher)
    }

    @Test func `without a wish of either side there is no timer`() throws {
        var response = try Calls.response(200)
        #expect(try SessionTimer(server: Calls.invite(), in: &response, Wishes(), at: .zero) == nil)
        #expect(response.first(.sessionExpires) == nil)
        #expect(try SessionTimer(client: response, at: .zero) == nil)
    }

    @Test func `a session that is too short is refused, and asked for again as long as that`() throws {
        let short = try Calls.invite("Supported: timer", "Session-Expires: 120")
        let minimum = try #require(try SessionTimer.refusal(of: short, Wishes(minimum: 600)))
        #expect(minimum.seconds == 600)
        #expect(try SessionTimer.refusal(of: short, Wishes()) == nil)
        #expect(try SessionTimer.refusal(of: Calls.invite("Session-Expires: 120"), Wishes(minimum: 600)) == nil)
        let refused = try Calls.response(422, "Min-SE: 600")
        let again = try #require(SessionTimer.wishes(after: refused, to: Wishes(seconds: 120)))
        #expect(again == Wishes(seconds: 600, minimum: 600))
        #expect(SessionTimer.wishes(after: refused, to: again) == nil)
        var request = try Calls.invite()
        try SessionTimer.ask(in: &request, again, current: nil)
        #expect(request.values(named: "Session-Expires") == ["600"] && request.values(named: "Min-SE") == ["600"])
    }

    @Test func `one side refreshes at half, the other ends it before it is over`() throws {
        for (refresher, actions) in [
            ("uac", [(300, SessionTimer.Action.refresh), (568, .end)]), ("uas", [(568, .end)]),
        ] {
            let response = try Calls.response(200, "Session-Expires: 600;refresher=\(refresher)")
            var timer = try #require(try SessionTimer(client: response, at: .zero))
            timer.restart(at: .zero + .seconds(100))
            for (second, action) in actions {
                let due = MediaTime.zero + .seconds(100 + second)
                #expect(timer.deadline == due)
                let early = timer.handleTimeout(at: due - .milliseconds(1))
                #expect(early == nil)
                let done = timer.handleTimeout(at: due)
                #expect(done == action)
            }
            #expect(timer.deadline == nil)
            timer.restart(at: .zero + .seconds(1000))
            #expect(timer.deadline == .zero + .seconds(1000 + actions[0].0))
        }
        // Of a short one a third is left, where 32 s would be more.
        let short = try Calls.response(200, "Session-Expires: 90;refresher=uas")
        #expect(try SessionTimer(client: short, at: .zero)?.deadline == .zero + .seconds(60))
    }

    @Test func `a refresh says who refreshes, as it was agreed`() throws {
        let response = try Calls.response(200, "Session-Expires: 600;refresher=uas")
        let timer = try #require(try SessionTimer(client: response, at: .zero))
        var request = try Calls.invite()
        try SessionTimer.ask(in: &request, Wishes(seconds: 1800), current: timer)
        #expect(request.values(named: "Session-Expires") == ["600;refresher=uas"])
    }
}
