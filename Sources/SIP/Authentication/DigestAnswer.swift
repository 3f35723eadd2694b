/// The credentials of a request as a server reads them.
///
/// Source: RFC 7616, section 3.4
struct DigestAnswer: Sendable {
    let user: DigestUser
    let response: Secret
    /// How often the nonce was used, by the client's count; 1 without qop.
    let count: UInt32
    /// All but the key.
    let input: DigestInput
    private let isSession: Bool

    /// Nil when something is missing, there twice, too long, or of a wrong form.
    init?(_ value: AuthenticationValue, _ algorithm: DigestAlgorithm, to request: SIPMessage) {
        let names = value.parameters.map { $0.name.map(\.lowercase) }
        guard Set(names).count == names.count,
            value.parameters.allSatisfy({ $0.value.count <= DigestLimits.valueByteCount }),
            let userName = value["username"], let nonce = value["nonce"], let uri = value["uri"],
            let response = value["response"], response.count == algorithm.hash.digitCount
        else { return nil }
        let qop = value["qop"].map { DigestQop(parsing: $0) }
        if qop == .some(nil) || qop == nil && algorithm.isSession { return nil }
        var (nonceCount, cnonce): (Bytes, Bytes) = ([], [])
        var count: UInt32 = 1
        if qop != nil {
            guard let digits = value["nc"], let number: UInt32 = digits.hexadecimal(), number > 0,
                let own = value["cnonce"], !own.isEmpty
            else { return nil }
            (nonceCount, cnonce, count) = (digits, own, number)
        }
        let isHashed = value["userhash"]?.isNamed("true") ?? false
        user = isHashed ? .hash(userName.detached, algorithm.hash) : .name(userName.detached)
        (self.response, self.count, isSession) = (Secret(response), count, algorithm.isSession)
        input = DigestInput(
            hash: algorithm.hash,
            key: Secret(""),
            nonce: nonce,
            qop: qop.flatMap(\.self),
            nonceCount: nonceCount,
            cnonce: cnonce,
            method: Bytes(request.method?.name ?? ""),
            uri: uri,
            body: request.bodyBytes
        )
    }

    /// What the response is when the user's first hash is `ha1`.
    func expectedResponse(_ ha1: Secret) -> Bytes {
        var input = input
        input.key =
            isSession ? DigestInput.sessionKey(input.hash, ha1: ha1, nonce: input.nonce, cnonce: input.cnonce) : ha1
        return input.response()
    }
}
