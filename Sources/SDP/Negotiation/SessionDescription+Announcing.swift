internal import CallBasics

extension SessionDescription {
    /// A description of streams that are announced, and not agreed on: whoever has it can take them.
    ///
    /// Addresses and ports are those that media goes to. Payload types are those of the configuration, whatever they are:
    /// nobody answers, and no number had another meaning before.
    /// Throws: `invalidConfiguration` or `invalidCharacter` when the configuration cannot be written.
    /// Source: RFC 8866.
    package init(announcing configuration: SessionConfiguration, sessionID: UInt64) throws(SDPError) {
        let connection = try DescriptionWriter.connection(configuration.address)
        let userName = try DescriptionWriter.word(configuration.userName, "The user's name")
        var sections: [[DescriptionLine]] = []
        for medium in configuration.media {
            let transport = medium.protocols.first ?? .rtpAVP
            sections.append(
                try DescriptionWriter.section(
                    medium,
                    transport: transport.name,
                    formats: medium.formats,
                    direction: medium.direction,
                    isMultiplexed: medium.isMultiplexed,
                    controlPort: medium.controlPort,
                    security: transport.hasKeysInDescription ? medium.keys.map(\.line) : []
                )
            )
        }
        let origin = "\(userName) \(sessionID & UInt64(Int64.max)) 1 \(connection)"
        self.init(
            sessionLines: try DescriptionWriter.session(configuration, origin, connection: connection, times: "0 0"),
            sections: sections
        )
    }
}
