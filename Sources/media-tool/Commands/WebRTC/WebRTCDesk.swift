import CallBasics
import Foundation
import MediaEngine
import SDP

/// What a browser says that it has heard of a call.
struct BrowserHearing: Sendable, Decodable {
    let packets: Int
    let lost: Int
    /// The sum over time of the square of the level, which is 1 at most, in seconds; and the time.
    let energy: Double
    let seconds: Double

    /// The mean level in dBFS, by peaks as Chromium counts it; nil while nothing was played.
    var level: Double? {
        guard seconds > 0, energy > 0 else { return nil }
        return (100 * log10(energy / seconds)).rounded() / 10
    }

    var json: JSONValue {
        .object([
            ("packets", .integer(packets)), ("lost", .integer(lost)), ("level", level.map { .number($0) } ?? .null),
        ])
    }

    var text: String {
        "The browser got \(packets) packets, lost \(lost), and played \(level.map { "\($0) dBFS" } ?? "silence")."
    }
}

/// Takes the calls that a page makes, and serves the page.
actor WebRTCDesk {
    private let engine: CallEngine
    private let options: WebRTCOptions
    private let gate: PageGate
    private let limit: Int
    private let teller: SIPTeller
    private var calls: [String: WebRTCCall] = [:]
    private var heard: [String: BrowserHearing] = [:]
    private var madeCount = 0
    /// Calls that are being answered, among those made.
    private var openingCount = 0
    private var isClosed = false
    private var failure: (any Error)?
    private let ends: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init(_ engine: CallEngine, _ options: WebRTCOptions, _ gate: PageGate, limit: Int, _ teller: SIPTeller) {
        (self.engine, self.options, self.gate, self.limit, self.teller) = (engine, options, gate, limit, teller)
        (ends, continuation) = AsyncStream.makeStream()
    }

    /// Waits until it was closed, or so many calls were made, and all have ended.
    func finished() async {
        for await _ in ends {}
    }

    /// Ends all calls, and takes no more.
    func close() {
        isClosed = true
        for call in calls.values { call.hangUp() }
        finishIfDone()
    }

    /// Throws what went wrong with the files of a call.
    func check() throws {
        if let failure { throw failure }
    }

    func answer(_ request: PageRequest) async -> PageResponse {
        if let refusal = gate.refusal(of: request) { return refusal }
        let parts = request.path.split(separator: "/").map(String.init)
        switch (request.method, parts.first, parts.count) {
        case ("GET", nil, 0), ("HEAD", nil, 0):
            return PageResponse(contentType: "text/html; charset=utf-8", WebRTCPage.html)
        case ("GET", "call.js", 1):
            return PageResponse(contentType: "text/javascript; charset=utf-8", WebRTCPage.script)
        case ("GET", "call.css", 1): return PageResponse(contentType: "text/css; charset=utf-8", WebRTCPage.style)
        case ("POST", "call", 1): return await call(request)
        case ("DELETE", "call", 2):
            guard let call = calls[parts[1]] else { return PageResponse(404, "There is no such call.") }
            call.hangUp(by: "them")
            return PageResponse(contentType: "text/plain; charset=utf-8", "")
        case ("POST", "call", 3) where parts[2] == "heard":
            guard calls[parts[1]] != nil else { return PageResponse(404, "There is no such call.") }
            guard let said = try? JSONDecoder().decode(BrowserHearing.self, from: Data(request.body.utf8)) else {
                return PageResponse(400, "That is not what a page tells.")
            }
            heard[parts[1]] = said
            return PageResponse(contentType: "text/plain; charset=utf-8", "")
        default: return PageResponse(404, "There is no \(request.method) \(request.path).")
        }
    }

    private func call(_ request: PageRequest) async -> PageResponse {
        guard request.contentType?.lowercased().hasPrefix("application/sdp") ?? false else {
            return PageResponse(415, "Send an offer as application/sdp.")
        }
        guard !isClosed, madeCount < limit else { return PageResponse(503, "No more calls are taken.") }
        guard calls.count + openingCount < (options.isForSeveral ? Self.callLimit : 1) else {
            return PageResponse(503, "The line is busy.")
        }
        (madeCount, openingCount) = (madeCount + 1, openingCount + 1)
        defer {
            openingCount -= 1
            finishIfDone()
        }
        let identifier = UUID().uuidString.lowercased()
        do {
            let offer = try SessionDescription(parsing: request.body)
            let (call, answer) = try await WebRTCCall.answering(offer, identifier, by: engine, options)
            calls[identifier] = call
            if isClosed { call.hangUp() }
            Task { await follow(call) }
            let place = "/call/\(identifier)"
            return PageResponse(status: 201, contentType: "application/sdp", location: place, answer.description)
        } catch {
            madeCount -= 1
            return PageResponse(error is SDPError ? 406 : 500, "\(error)")
        }
    }

    private func follow(_ call: WebRTCCall) async {
        do {
            var report = try await call.run(teller)
            report.browser = heard.removeValue(forKey: call.identifier)
            teller.tell("ended", report.members, text: report.text)
        } catch {
            failure = failure ?? error
            isClosed = true
        }
        calls[call.identifier] = nil
        finishIfDone()
    }

    private func finishIfDone() {
        if calls.isEmpty, openingCount == 0, isClosed || madeCount >= limit { continuation.finish() }
    }

    private static let callLimit = 16
}
