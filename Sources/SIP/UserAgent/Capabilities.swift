internal import CallBasics

/// What a user agent takes: each request is checked by it, and others are told of it.
///
/// Source: RFC 3261, sections 8.2 and 11.2
package struct Capabilities: Hashable, Sendable {
    /// The types of body that a method may bring; a body of a method that is not listed is passed over.
    package struct BodyTypes: Hashable, Sendable {
        package var method: SIPMethod
        /// As `type/subtype`, the one that is liked best first.
        package var types: [String]

        package init(_ method: SIPMethod, _ types: [String]) { (self.method, self.types) = (method, types) }
    }

    /// The methods that are taken, as Allow tells them.
    package var methods: [SIPMethod] { didSet { lines = Lines(methods, extensions, bodies) } }
    /// The option tags that are understood, as Supported tells them.
    package var extensions: [String] { didSet { lines = Lines(methods, extensions, bodies) } }
    /// What bodies may be, as Accept tells it.
    package var bodies: [BodyTypes] { didSet { lines = Lines(methods, extensions, bodies) } }
    private var lines: Lines

    package init(methods: [SIPMethod], extensions: [String] = [], bodies: [BodyTypes] = []) {
        (self.methods, self.extensions, self.bodies) = (methods, extensions, bodies)
        lines = Lines(methods, extensions, bodies)
    }

    /// The headers that tell it; an empty one is left out.
    private struct Lines: Hashable {
        let allow: Bytes
        let accept: Bytes
        let supported: Bytes

        init(_ methods: [SIPMethod], _ extensions: [String], _ bodies: [BodyTypes]) {
            var types: [String] = []
            for type in bodies.flatMap(\.types) where !types.contains(type) { types.append(type) }
            allow = Bytes(methods.map(\.name).joined(separator: ", "))
            accept = Bytes(types.joined(separator: ", "))
            supported = Bytes(extensions.joined(separator: ", "))
        }
    }

    /// An answer to a request that is not taken.
    package struct Refusal: Hashable, Sendable {
        package var status: Int
        /// What the answer tells besides: what would be taken.
        package var headers: [Header]

        package struct Header: Hashable, Sendable {
            package var name: HeaderName
            package var value: String
        }

        package init(status: Int, headers: [Header] = []) { (self.status, self.headers) = (status, headers) }

        /// The response with this refusal.
        ///
        /// Throws: `invalidCharacter` when what is taken over from the request would end its line
        package func response(to request: SIPMessage, tag: Bytes) throws(SIPError) -> SIPMessage {
            var response = try request.response(status: status, reason: SIPStatus.phrase(status), tag: tag)
            for header in headers { try response.append(header.name, Bytes(header.value)) }
            return response
        }
    }

    /// Why a request that is sound is not taken; nil when it is.
    ///
    /// In this order: method, required extensions, encoding and type of the body, type of the answer. An ACK gets no answer,
    /// and a CANCEL is about its request: both are taken.
    /// Throws: `badRequest` when what is looked at breaks its grammar; `messageTooLarge`
    package func refusal(of request: SIPMessage) throws(SIPError) -> Refusal? {
        guard let method = request.method, method != .ack, method != .cancel else { return nil }
        guard methods.contains(method) else {
            let status = SIPMethod.known.contains(method) ? 405 : 501
            return Refusal(status: status, headers: [.init(name: .allow, value: lines.allow.text)])
        }
        let unknown =
            request.first(.require) == nil ? [] : try request.tokens(of: .require).filter { !understands($0) }
        guard unknown.isEmpty else {
            return Refusal(status: 420, headers: unknown.map { .init(name: .unsupported, value: $0) })
        }
        if let refusal = try refusalOfBody(of: request, method) { return refusal }
        // Who is in a call has read a description already.
        guard method == .invite, try request.to()?.tag == nil, !Self.mayBeDescribed(to: request) else { return nil }
        return Self.noDescription
    }

    private func refusalOfBody(of request: SIPMessage, _ method: SIPMethod) throws(SIPError) -> Refusal? {
        let isOptional = try request.value(.contentDisposition, as: ParameterizedValue.self)?.parameters
            .value("handling")?.isNamed("optional")
        guard !request.bodyBytes.isEmpty, isOptional != true,
            let types = bodies.first(where: { $0.method == method })?.types
        else { return nil }
        // Parts are looked for only in what can be read.
        guard ContentCoding.isDeflated(try request.tokens(of: .contentEncoding)) != nil else {
            return Self.unknownEncoding
        }
        // RFC 3261, section 7.4.1: a body has a type; what has none is taken for what the method usually brings.
        let unknown = try request.contentType().map { type throws(SIPError) in
            guard type.type.isNamed("multipart"), types.contains(where: { type.isNamed(Bytes($0)) }) else {
                return !types.contains { type.isNamed(Bytes($0)) }
            }
            return try request.bodyParts().contains { part in
                part.isRequired && part.type.map { type in !types.contains { type.isNamed(Bytes($0)) } } ?? false
            }
        }
        if unknown == true {
            return Refusal(status: 415, headers: [.init(name: .accept, value: types.joined(separator: ", "))])
        }
        return nil
    }

    /// Whether Accept leaves room for a session description, as the answer to a call brings one.
    ///
    /// Source: RFC 3261, section 20.1; RFC 4475, section 3.3.15
    private static func mayBeDescribed(to request: SIPMessage) -> Bool {
        let types = try? request.list(.accept, as: MediaType.self)
        guard let types, !types.isEmpty else { return true }
        return types.contains { type in
            type.isNamed("application", "sdp") || type.isNamed("application", "*") || type.isNamed("*", "*")
        }
    }

    private static let noDescription = Refusal(
        status: 406,
        headers: [.init(name: .warning, value: "399 - \"Calls are answered by application/sdp\"")]
    )

    private func understands(_ tag: String) -> Bool { extensions.contains { $0.lowercased() == tag.lowercased() } }

    /// The refusal of a body in an encoding that is not taken.
    static let unknownEncoding = Refusal(
        status: 415,
        headers: [.init(name: .acceptEncoding, value: ContentCoding.accepted)]
    )
    private static let encodings = Bytes(ContentCoding.accepted)

    /// Tells what is taken, as the answer to OPTIONS does.
    ///
    /// Throws: `invalidCharacter` when a type or a tag would end its line
    package func describe(in message: inout SIPMessage) throws(SIPError) {
        try message.set(.allow, to: lines.allow)
        if !lines.accept.isEmpty { try message.set(.accept, to: lines.accept) }
        try message.set(.acceptEncoding, to: Self.encodings)
        if !lines.supported.isEmpty { try message.set(.supported, to: lines.supported) }
    }
}
