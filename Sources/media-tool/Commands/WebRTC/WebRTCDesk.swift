import CallBasics
import CallCore
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
    private let ice: ICEConfiguration
    private let gate: PageGate
    private let limit: Int
    private let teller: SIPTeller
    private var calls: [String: WebRTCCall] = [:]
    private var heard: [String: BrowserHearing] = [:]
    /// Calls a further offer of which is being answered.
    private var changing: Set<String> = []
    private var madeCount = 0
    /// Calls that are being answered, among those made.
    private var openingCount = 0
    private var isClosed = false
    private var failure: (any Error)?
    private let ends: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init(
        _ engine: CallEngine,
        _ options: WebRTCOptions,
        ice: ICEConfiguration,
        _ gate: PageGate,
        limit: Int,
        _ teller: SIPTeller
    ) {
        (self.engine, self.options, self.ice, self.gate, self.limit) = (engine, options, ice, gate, limit)
        self.teller = teller
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
        switch (parts.first, parts.count) {
        case (nil, 0): return page(request, "text/html", WebRTCPage.html)
        case ("call.js", 1): return page(request, "text/javascript", WebRTCPage.script)
        case ("call.css", 1): return page(request, "text/css", WebRTCPage.style)
        case ("call", 1):
            switch request.method {
            case "POST": return await call(request)
            case "OPTIONS": return PageResponse(allowing: "POST, OPTIONS", accepting: "application/sdp")
            default: return PageResponse(refusing: request.method, allowing: "POST, OPTIONS")
            }
        case ("call", 2):
            guard let call = calls[parts[1]] else { return Self.noCall }
            switch request.method {
            case "DELETE":
                call.hangUp(by: "them")
                return PageResponse("")
            case "PATCH": return await change(call, request)
            default: return PageResponse(refusing: request.method, allowing: "DELETE, PATCH")
            }
        case ("call", 3) where parts[2] == "heard":
            guard calls[parts[1]] != nil else { return Self.noCall }
            guard request.method == "POST" else { return PageResponse(refusing: request.method, allowing: "POST") }
            guard let said = try? JSONDecoder().decode(BrowserHearing.self, from: Data(request.body.utf8)) else {
                return PageResponse(400, "That is not what a page tells.")
            }
            heard[parts[1]] = said
            return PageResponse("")
        default: return PageResponse(404, "There is no \(request.path).")
        }
    }

    private func page(_ request: PageRequest, _ type: String, _ text: String) -> PageResponse {
        guard request.method == "GET" || request.method == "HEAD" else {
            return PageResponse(refusing: request.method, allowing: "GET, HEAD")
        }
        return PageResponse(contentType: "\(type); charset=utf-8", text)
    }

    private static let noCall = PageResponse(404, "There is no such call.")

    /// Answers a further offer of a call; pieces of one (RFC 9725, section 4.3.1) are not taken.
    private func change(_ call: WebRTCCall, _ request: PageRequest) async -> PageResponse {
        if request.contentType?.lowercased().hasPrefix("application/trickle-ice-sdpfrag") ?? false {
            return PageResponse(422, "Pieces of an offer are not taken: send a whole one, as application/sdp.")
        }
        if let refusal = Self.refusal(ofType: request) { return refusal }
        // Both are to take on what was agreed in the same order.
        guard changing.insert(call.identifier).inserted else {
            return PageResponse(409, "Another change of the call is under way.")
        }
        defer { changing.remove(call.identifier) }
        do {
            let answer = try await call.answer(SessionDescription(parsing: request.body), teller)
            return PageResponse(contentType: "application/sdp", answer.description)
        } catch {
            return Self.refusal(for: error)
        }
    }

    private static func refusal(ofType request: PageRequest) -> PageResponse? {
        if request.contentType?.lowercased().hasPrefix("application/sdp") ?? false { return nil }
        var refusal = PageResponse(415, "Send an offer as application/sdp.")
        refusal.headers = [("Accept-\(request.method.capitalized)", "application/sdp")]
        return refusal
    }

    /// What is answered to an offer that was not taken; what is wrong on this side is told here alone.
    private static func refusal(for error: any Error) -> PageResponse {
        switch error {
        case let error as SDPError where error.code != .invalidConfiguration:
            return PageResponse(error.code == .notAcceptable ? 422 : 400, error.message)
        case let error as PhoneError where error.code == .noSound: return PageResponse(422, error.message)
        case is WebRTCCall.NoWay: return PageResponse(422, "\(error)")
        default:
            StandardError.write("Note: an offer was refused: \(error)\n")
            return PageResponse(500, "The other side cannot take the call. Its shell says why.")
        }
    }

    /// Answers an offer (RFC 9725, section 4.2).
    private func call(_ request: PageRequest) async -> PageResponse {
        if let refusal = Self.refusal(ofType: request) { return refusal }
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
            let (call, answer) = try await WebRTCCall.answering(offer, identifier, by: engine, options, ice: ice)
            calls[identifier] = call
            if isClosed { call.hangUp() }
            Task { await follow(call) }
            var response = PageResponse(status: 201, contentType: "application/sdp", answer.description)
            response.headers = [("Location", "/call/\(identifier)")]
            return response
        } catch {
            madeCount -= 1
            return Self.refusal(for: error)
        }
    }

    private func follow(_ call: WebRTCCall) async {
        do {
            var report = try await call.run(teller)
            report.browser = heard[call.identifier]
            teller.tell("ended", report.members, text: report.text)
        } catch {
            failure = failure ?? error
            isClosed = true
        }
        (calls[call.identifier], heard[call.identifier]) = (nil, nil)
        finishIfDone()
    }

    private func finishIfDone() {
        if calls.isEmpty, openingCount == 0, isClosed || madeCount >= limit { continuation.finish() }
    }

    private static let callLimit = 16
}
