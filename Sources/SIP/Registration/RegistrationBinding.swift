package import CallBasics

/// What a registrar granted, and what it said along with it.
package struct RegistrationBinding: Sendable {
    /// How long the binding lasts, in seconds.
    package let granted: UInt32
    package let expiresAt: MediaTime
    /// The way that later requests of the account go (RFC 3608).
    package let serviceRoutes: [NameAddress]
    /// Addresses of this device; temporary ones hide who it is (RFC 5627).
    @Boxed package private(set) var publicGRUU: SIPURI?
    @Boxed package private(set) var temporaryGRUU: SIPURI?
    /// How long a flow may be silent, in seconds (RFC 5626, section 4.4).
    package let flowTimer: UInt32?
    /// Whether the registrar keeps the flow (RFC 5626, section 6).
    package let isOutbound: Bool
    /// Whether the network sends pushes of our provider; nil when none was asked for (RFC 8599, section 4.1).
    package let isPushServed: Bool?
    /// How long before its end the network wants the binding refreshed, in seconds.
    package let wakeSeconds: UInt32?
    /// The own address as the first hop saw it.
    package let receivedHost: String?
    package let receivedPort: UInt16?
    /// Whether the registrar listed any binding at all, as it must.
    package let isListed: Bool

    /// Nil when the registrar lists other bindings and not this one: it was refused without a word.
    ///
    /// Source: RFC 3261, section 10.2.4 and 10.3
    init?(
        _ response: SIPMessage,
        to own: NameAddress,
        _ configuration: RegistrationConfiguration,
        asked: UInt32,
        at now: MediaTime
    ) {
        let contacts = response.values(of: .contact).compactMap { try? NameAddress(parsing: $0) }
        let found = contacts.first { Self.isSame($0, own) }
        guard contacts.isEmpty || found != nil else { return nil }
        isListed = found != nil
        let general: WholeNumber? = try? response.value(.expires)
        var granted = general?.value ?? asked
        if let found {
            // Out of range is read as an hour (RFC 3261, section 20.10 with 25.1).
            do { granted = try found.expires() ?? granted } catch { granted = 3600 }
        }
        guard granted > 0 else { return nil }
        self.granted = granted
        expiresAt = now + .seconds(Int64(granted))
        let routes: [NameAddress] = (try? response.list(.serviceRoute)) ?? []
        serviceRoutes = routes.compactMap { try? NameAddress(parsing: $0.bytes) }
        _publicGRUU = Boxed(
            wrappedValue: found?.parameters.value("pub-gruu").flatMap { try? SIPURI(parsing: $0.detached) }
        )
        _temporaryGRUU = Boxed(
            wrappedValue: found?.parameters.value("temp-gruu").flatMap { try? SIPURI(parsing: $0.detached) }
        )
        let timer: WholeNumber? = try? response.value(.flowTimer)
        flowTimer = timer?.value
        isOutbound = ((try? response.tokens(of: .require)) ?? []).contains { Bytes($0).isNamed("outbound") }
        let features: [ParameterizedValue] = (try? response.list(.featureCaps)) ?? []
        isPushServed = configuration.pushProvider.map { provider in
            features.contains { $0.parameters.value("+sip.pns")?.isNamed(provider) ?? false }
        }
        wakeSeconds = features.lazy.compactMap { $0.number("+sip.pnsreg") }.first
        let via = try? response.topVia()
        (receivedHost, receivedPort) = (via?.received?.text, via?.responsePort)
    }

    /// By instance and reg-id where the registrar tells them, else by the URI.
    private static func isSame(_ listed: NameAddress, _ own: NameAddress) -> Bool {
        if let instance = own.parameters.value("+sip.instance"), let other = listed.parameters.value("+sip.instance") {
            guard instance.isNamed(other) else { return false }
            let regID = listed.parameters.value("reg-id")
            return regID == nil || regID == own.parameters.value("reg-id")
        }
        return listed.uri.isEquivalent(to: own.uri)
    }
}

/// When a binding is refreshed, and when a failed registration is tried again.
struct RegistrationSchedule: Sendable {
    var generator: SeededGenerator
    /// How many temporary failures came one after another.
    private(set) var failureCount = 0
    /// How many flows ended, one after another, before they had proved to work.
    private var lossCount = 0

    init(_ generator: SeededGenerator) { self.generator = generator }

    mutating func succeed() { failureCount = 0 }

    /// The time from the grant to the refresh.
    ///
    /// Between 85 and 90 % of what was granted, at least 30 s before the end, but not before half of the time; at half
    /// of it up to 60 s. A network that wakes phones wants it some time before the end (RFC 8599, section 4.1.4).
    mutating func refreshDelay(granted: UInt32, wakeSeconds: UInt32?) -> Duration {
        let all = Double(granted)
        var delay = all / 2
        if granted > 60 { delay = max(min(all * (0.85 + 0.05 * generator.nextUnit()), all - 30), delay) }
        if let wakeSeconds, wakeSeconds < granted { delay = min(delay, all - Double(wakeSeconds)) }
        return .seconds(delay)
    }

    /// The time to the next attempt after a temporary failure (RFC 5626, section 4.5).
    mutating func retryDelay(hasOtherFlow: Bool, retryAfter: UInt32?) -> Duration {
        failureCount += 1
        return max(delay(failureCount, base: hasOtherFlow ? 90 : 30), Self.pause(retryAfter))
    }

    /// The time to the next attempt after a flow has ended; nil for at once: the first may have met a server that began anew.
    mutating func lossDelay(isProven: Bool) -> Duration? {
        lossCount = isProven ? 0 : lossCount + 1
        return lossCount > 1 ? delay(lossCount - 1, base: 30) : nil
    }

    private mutating func delay(_ count: Int, base: Double) -> Duration {
        let longest = min(1800, base * Double(1 << min(count - 1, 10)))
        return .seconds(longest * (0.5 + 0.5 * generator.nextUnit()))
    }

    /// A refusal is not tried again for an hour.
    func refusalDelay(retryAfter: UInt32?) -> Duration { max(.seconds(3600), Self.pause(retryAfter)) }

    /// What a server asks for, at most a day.
    private static func pause(_ retryAfter: UInt32?) -> Duration { .seconds(Int64(min(retryAfter ?? 0, 86_400))) }
}
