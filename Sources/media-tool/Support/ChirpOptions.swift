import ArgumentParser
import MediaEngine

/// Which cards chirps go through, and how many.
struct ChirpOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Measure mouth to ear: B plays chirps on this card. \(DeviceName.help) role:AU is the call role.",
            valueName: "device"
        ),
        completion: DeviceName.completion
    )
    var device: String?

    @Option(
        help: ArgumentHelp("The card that hears the chirps. Default: that of --device.", valueName: "device"),
        completion: DeviceName.completion
    )
    var captureDevice: String?

    @Option(help: ArgumentHelp("How many chirps, 1 to 100, one per second. Default: 5.", valueName: "n"))
    var chirps: Int?

    func validate() throws {
        try Quantity.check("--chirps", chirps, in: 1...100)
        guard device == nil else { return }
        for (name, isGiven) in [("--capture-device", captureDevice != nil), ("--chirps", chirps != nil)] where isGiven {
            throw ValidationError("'\(name)' needs '--device', the card that plays. Name it.")
        }
    }

    /// Refuses options that make no sense beside chirps.
    func check(excluding options: [(name: String, isGiven: Bool)]) throws {
        guard device != nil, let wrong = options.first(where: \.isGiven)?.name else { return }
        throw ValidationError("'\(wrong)' cannot be used with '--device', which sends chirps. Leave out one.")
    }

    /// The card that plays and the one that hears.
    func cards(_ device: String, in list: CardList) throws -> (any SoundCard, any SoundCard) {
        let playback = try list.card(named: device)
        return (playback, try captureDevice.map { try list.card(named: $0) } ?? playback)
    }
}
