internal import CallBasics

/// What the binding of one account is made from.
package struct RegistrationConfiguration: Hashable, Sendable {
    /// A push parameter of the Contact's URI, as it is written there (RFC 8599, section 6).
    package struct PushParameter: Hashable, Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
    }

    /// To and From.
    package var addressOfRecord: SIPURI
    /// The domain that the request goes to.
    package var registrar: SIPURI
    /// Where requests are to come: the address of the flow, or what the registrar saw of it.
    package var contact: SIPURI
    /// A URN that stays the same over starts and processes, such as `urn:uuid:...` (RFC 5626, section 4.1).
    package var instance: String?
    package var regID: UInt32 = 1
    /// All that begins with `pn-`, in a fixed spelling: registrars compare it.
    package var push: [PushParameter] = []
    /// Parameters of the Contact that say what the phone can do, such as `audio` or `+sip.pnsreg` (RFC 3840).
    package var featureTags: [String] = []
    /// The way to the registrar, by an outbound proxy for example.
    package var routes: [NameAddress] = []
    /// How long the binding is asked to last, in seconds.
    package var expires: UInt32 = 3600
    /// Headers beside those that a registration has.
    package var headers: [Header] = []

    /// A header, as it is written.
    package struct Header: Hashable, Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
    }

    package init(addressOfRecord: SIPURI, registrar: SIPURI, contact: SIPURI) {
        (self.addressOfRecord, self.registrar, self.contact) = (addressOfRecord, registrar, contact)
    }

    /// Whether the process can wake itself to refresh, and says so (RFC 8599, section 4.1.4).
    var wakesItself: Bool { featureTags.contains { Bytes($0).isNamed("+sip.pnsreg") } }
    var pushProvider: Bytes? { push.first { Bytes($0.name).isNamed("pn-provider") }.map { Bytes($0.value) } }
}

/// What one REGISTER differs in from another of the same binding.
struct RegisterRequest: Sendable {
    var callID: Bytes
    var tag: Bytes
    var number: UInt32
    /// 0 to take the binding away.
    var expires: UInt32
    var hasPush: Bool

    /// The request without Via.
    ///
    /// Throws: `badRequest` or `invalidCharacter` when the configuration holds what cannot be written
    /// Source: RFC 3261, section 10.2; RFC 5626, section 4.2; RFC 3327, section 5.1
    func message(_ configuration: RegistrationConfiguration) throws(SIPError) -> SIPMessage {
        var message = SIPMessage(.register, to: configuration.registrar)
        try message.append(.maxForwards, Bytes("70"))
        for route in configuration.routes { try message.append(.route, route) }
        var from = NameAddress(configuration.addressOfRecord)
        try message.append(.to, from)
        from.tag = tag
        try message.append(.from, from)
        try message.append(.callID, callID)
        try message.append(.cSeq, CSeq(number, .register))
        try message.append(.contact, contact(configuration))
        try message.append(.expires, WholeNumber(expires))
        try message.append(.supported, Bytes("path, outbound, gruu"))
        for header in configuration.headers { try message.append(named: header.name, header.value) }
        return message
    }

    func contact(_ configuration: RegistrationConfiguration) throws(SIPError) -> NameAddress {
        var text = [UInt8.less] + configuration.contact.bytes
        for parameter in configuration.push where hasPush {
            // The token says which device; without it nothing is left to be woken (RFC 8599, section 4.1.2).
            guard expires > 0 || !Bytes(parameter.name).isNamed("pn-prid") else { continue }
            text += ";\(parameter.name)=\(parameter.value)".utf8
        }
        text.append(.greater)
        if let instance = configuration.instance {
            text += ";+sip.instance=\"<\(instance)>\";reg-id=\(configuration.regID)".utf8
        }
        for tag in configuration.featureTags { text += ";\(tag)".utf8 }
        if expires == 0 { text += ";expires=0".utf8 }
        return try NameAddress(parsing: text[...])
    }
}
