import CallBasics
import CallCore
import MediaEngine
import SDP
import Synchronization

/// A call with a browser, from the descriptions to the report.
final class WebRTCCall: Sendable {
    /// What happens to it.
    private enum Step: Sendable {
        case secured
        case failed(String)
        /// Ended by the side that is named as reports do.
        case over(String)
    }

    /// The other side would not show that sound is wanted where its description says.
    struct NoWay: Error, CustomStringConvertible {
        var description: String {
            "The description has no ICE with rtcp-mux, or its side of ICE only answers. Have the other side check the way."
        }
    }

    let identifier: String
    private let sound: CallSound
    private let exchange: Mutex<OfferAnswer>
    private let options: WebRTCOptions
    private let steps: AsyncStream<Step>
    private let continuation: AsyncStream<Step>.Continuation

    private init(_ identifier: String, _ sound: CallSound, _ exchange: OfferAnswer, _ options: WebRTCOptions) {
        (self.identifier, self.sound, self.options) = (identifier, sound, options)
        self.exchange = Mutex(exchange)
        (steps, continuation) = AsyncStream.makeStream()
    }

    /// Answers what a browser offers.
    ///
    /// - Throws: `SDPError` when that cannot be taken; as `CallSound` does
    static func answering(
        _ offer: SessionDescription,
        _ identifier: String = "0",
        by engine: CallEngine,
        _ options: WebRTCOptions,
        ice: ICEConfiguration
    ) async throws -> (call: WebRTCCall, answer: SessionDescription) {
        let sound = try await options.sound(of: engine, ice: ice)
        do {
            var exchange = OfferAnswer(configuration: sound.session, sessionID: .random(in: .min ... .max))
            try exchange.receiveOffer(offer)
            let answer = try exchange.makeAnswer()
            return (try await made(identifier, sound, exchange, options), answer)
        } catch {
            _ = try? await sound.end(after: .zero)
            throw error
        }
    }

    /// Offers a call, and takes the answer that `exchanging` gets for it.
    ///
    /// - Throws: `SDPError` when the answer does not fit, what `exchanging` throws; as `CallSound` does
    static func offering(
        by engine: CallEngine,
        _ options: WebRTCOptions,
        ice: ICEConfiguration,
        _ exchanging: (SessionDescription) async throws -> SessionDescription
    ) async throws -> WebRTCCall {
        let sound = try await options.sound(of: engine, ice: ice)
        do {
            var exchange = OfferAnswer(configuration: sound.session, sessionID: .random(in: .min ... .max))
            try exchange.receiveAnswer(await exchanging(exchange.makeOffer()))
            return try await made("0", sound, exchange, options)
        } catch {
            _ = try? await sound.end(after: .zero)
            throw error
        }
    }

    private static func made(
        _ identifier: String,
        _ sound: CallSound,
        _ exchange: OfferAnswer,
        _ options: WebRTCOptions
    ) async throws -> WebRTCCall {
        guard let agreed = exchange.agreed, agreed.audio?.ice != nil else { throw NoWay() }
        try await sound.apply(agreed)
        return WebRTCCall(identifier, sound, exchange, options)
    }

    /// Answers a further offer, as when the browser holds, or looks for the way anew; all stays as it is when that throws.
    ///
    /// - Throws: `SDPError` when that cannot be taken, `NoWay`; as `CallSound` does, and then the call ends
    func answer(_ offer: SessionDescription, _ teller: SIPTeller) async throws -> SessionDescription {
        let (answer, agreed) = try exchange.withLock { exchange in
            var changed = exchange
            try changed.receiveOffer(offer)
            var generator = SystemRandomNumberGenerator()
            let answer = try changed.makeAnswer(using: &generator)
            guard let agreed = changed.agreed, agreed.audio?.ice != nil else { throw NoWay() }
            exchange = changed
            return (answer, agreed)
        }
        do {
            try await sound.apply(agreed)
        } catch {
            continuation.yield(.failed("\(error)"))
            throw error
        }
        let direction = agreed.audio?.direction ?? .inactive
        teller.tell(
            "changed",
            [("call", .string(identifier)), ("direction", .string(direction.rawValue))],
            text: "The browser has changed the call: \(direction.rawValue)."
        )
        return answer
    }

    /// Ends it, as one of both sides wishes; `run` gives the report.
    func hangUp(by side: String = "us") { continuation.yield(.over(side)) }

    /// Follows it to its end.
    ///
    /// - Returns: What it came to.
    /// - Throws: `EngineError` when a file could not be written
    func run(_ teller: SIPTeller) async throws -> WebRTCReport {
        let (sound, continuation) = (sound, continuation)
        var tasks = [
            Task {
                do throws(PhoneError) {
                    try await sound.secured()
                    continuation.yield(.secured)
                    await sound.ended()
                    if let failure = sound.securityFailure { throw failure }
                    continuation.yield(.over("them"))
                } catch {
                    continuation.yield(.failed(error.message))
                }
            },
            Task { [seconds = options.seconds] in
                await Interruption.wait(for: seconds.map { .seconds(fraction: $0) })
                continuation.yield(.over("us"))
            },
        ]
        defer { for task in tasks { task.cancel() } }
        var (begin, end, failure): (MediaTime?, String, String?) = (nil, "us", nil)
        following: for await step in steps {
            switch step {
            case .secured:
                // It was over before its keys were there.
                guard let security = await sound.security else { break }
                begin = MonotonicClock.current
                teller.tell(
                    "secured",
                    [("call", .string(identifier)), ("srtp", security.json)],
                    text: "Secured by \(security.suite) with \(security.fingerprint ?? "no certificate")."
                )
                tasks.append(Task { await sendKeys() })
            case .failed(let reason):
                (failure, end) = (reason, "network")
                break following
            case .over(let side):
                end = side
                break following
            }
        }
        let keys = await sound.call?.receivedKeys ?? ""
        let talk = begin.map { MonotonicClock.current - $0 } ?? .zero
        let security = await sound.security
        let media = try await sound.end(after: talk)
        return WebRTCReport(
            identifier: identifier,
            side: end,
            talk: talk,
            keys: keys,
            media: media,
            security: security,
            failure: failure
        )
    }

    private func sendKeys() async {
        guard let digits = options.dtmf, await Interruption.wait(.milliseconds(500)), !Task.isCancelled else {
            return
        }
        do {
            try await sound.call?.sendDTMF(digits.sequence.description)
        } catch {
            StandardError.write("The keys were not sent: \(error)\n")
        }
    }
}

/// What a call with a browser came to.
struct WebRTCReport: Sendable {
    let identifier: String
    let side: String
    let talk: Duration
    let keys: String
    let media: CallReport?
    let security: CallSecurity?
    /// Why there was no sound, with the remedy; nil when there was.
    let failure: String?
    /// What the browser says that it has heard; nil when it said nothing.
    var browser: BrowserHearing?

    var members: [(String, JSONValue)] {
        [
            ("call", .string(identifier)), ("status", .string(failure == nil ? "ok" : "failed")),
            ("endedBy", .string(side)), ("talkSeconds", .number(talk.roundedSeconds)),
            ("legs", .array(media?.legs.map(\.json) ?? [])), ("dtmf", .string(keys)),
            ("srtp", security.map(\.json) ?? .null), ("browser", browser.map(\.json) ?? .null),
            ("failure", JSONValue(failure)),
        ]
    }

    var text: String {
        var lines = [failure ?? "Ended by \(side) after \(talk.roundedSeconds) s of talk."]
        if !keys.isEmpty { lines.append("Keys heard: \(keys)") }
        if let security { lines.append(security.text) }
        if let browser { lines.append(browser.text) }
        return lines.joined(separator: "\n") + "\n" + (media?.table ?? "")
    }
}
