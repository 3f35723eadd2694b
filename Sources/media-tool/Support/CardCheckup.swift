import MediaEngine

/// What `doctor` looks at in sound cards.
struct CardCheckup {
    let cards: CardList
    let bindings: CardBindings

    /// The findings on cards, roles, and the latency of the call card's pair.
    func findings() async throws -> [Finding] {
        let all = cards.cards.map(\.description).filter { $0.backend == "alsa" && $0.id != CardRole.call.id }
        // A PCM that is known by its name alone stands for software, or for a card that is listed beside it.
        let hardware = all.filter { $0.id != CardID("alsa:\($0.name)") && $0.id != CardRole.ringer.id }
        var findings = [
            Finding(
                area: "cards",
                status: hardware.isEmpty ? .warning : .ok,
                finding: hardware.isEmpty
                    ? "ALSA has no sound hardware."
                    : "ALSA has \(hardware.map(\.name).joined(separator: ", ")).",
                remedy: hardware.isEmpty
                    ? "Plug one in; in a container pass /dev/snd on (--device /dev/snd). Without hardware, "
                        + "Scripts/virtual-cards gives cards that need none."
                    : nil
            )
        ]
        let roles: [(String, CardBinding, any SoundCard, CardDirection)] = [
            ("call card, playback", bindings.callPlayback, cards.callCard.playbackCard, .playback),
            ("call card, capture", bindings.callCapture, cards.callCard.captureCard ?? NullCard(), .capture),
            ("ringer card", bindings.ringer, cards.ringerCard.playbackCard, .playback),
        ]
        var opened = 0
        for (index, (name, binding, card, direction)) in roles.enumerated() {
            let finding = await open(name, binding, card, direction, index == 2 ? .ringer : .call)
            if index < 2, finding.status == .ok, !isSilent(card) { opened += 1 }
            findings.append(finding)
        }
        findings.append(opened == 2 ? try await latency() : unmeasured)
        return findings
    }

    private func isSilent(_ card: any SoundCard) -> Bool { card.description.id == "builtin:null" }

    private func open(
        _ name: String,
        _ binding: CardBinding,
        _ card: any SoundCard,
        _ direction: CardDirection,
        _ role: CardRole
    ) async -> Finding {
        let bound = "bound to \(binding.device) by \(binding.source)"
        let configuration = role.configuration(CallEngine.cardFormat)
        do {
            let endpoint = try await BlockingWork.run {
                try card.open(direction, configuration, at: MonotonicClock.current)
            }
            let format = endpoint.format
            func milliseconds(_ frames: Int) -> String { "\(Int(format.duration(ofFrames: frames).milliseconds)) ms" }
            let shape =
                isSilent(card)
                ? "it is the built-in null card, which is silent"
                : "it opens at \(format), periods of \(milliseconds(endpoint.periodFrameCount)), "
                    + "a buffer of \(milliseconds(endpoint.bufferFrameCount))"
            return Finding(area: name, status: .ok, finding: "\(bound); \(shape).")
        } catch {
            // What somebody chose must work; what nobody chose may be absent.
            let isChosen = binding.isByHand
            return Finding(
                area: name,
                status: isChosen ? .failure : .warning,
                finding: "\(bound); it does not open. \(error)",
                remedy: isChosen
                    ? "Correct the binding; `media-tool devices` lists what there is."
                    : "Calls are silent until then. Bind the role with \(variable(role)), or in "
                        + "~/.config/media-engine/config; `media-tool devices` lists what there is."
            )
        }
    }

    private func variable(_ role: CardRole) -> String { "MEDIA_ENGINE_\(role.shortName)=PCM" }

    private var unmeasured: Finding {
        Finding(
            area: "card latency",
            status: .warning,
            finding: "Not measured: the call card does not both play and record.",
            remedy: "Bind a card with MEDIA_ENGINE_AU, and let doctor look again."
        )
    }

    /// Plays silence and records for a while, and asks the cards what they hold.
    private func latency() async throws -> Finding {
        let format = CallEngine.cardFormat
        let session = try CardSession()
        let playback: CardSession.Opened
        let capture: CardSession.Opened
        do {
            playback = try await session.open(cards.callCard, .playback)
            capture = try await session.open(cards.callCard, .capture)
        } catch {
            await session.stop()
            return Finding(
                area: "card latency",
                status: .warning,
                finding: "Each opens alone, but not both at once. \(error)",
                remedy: "Bind playback and capture to PCMs that open together, such as those of a sound server."
            )
        }
        var graph = Graph()
        try graph.connect(SilenceFilter(format: format), to: playback.filter)
        try graph.connect(capture.filter, to: LevelMeterFilter(format: format))
        try session.run(graph, name: "doctor")
        _ = await Interruption.wait(.milliseconds(1200))
        let (played, recorded) = (playback.statistics, capture.statistics)
        await session.stop()
        func milliseconds(_ frames: Int) -> Double { format.duration(ofFrames: max(frames, 0)).milliseconds.rounded() }
        let (out, inward) = (milliseconds(played.latencyFrames), milliseconds(recorded.latencyFrames))
        let xruns = played.xruns + recorded.xruns
        let finding =
            "playback holds \(Int(out)) ms, capture \(Int(inward)) ms; \(English.count(xruns, "xrun")) in 1.2 s."
        let isGood = out + inward <= 80 && xruns <= 1 && played.frames > 0 && recorded.frames > 0
        return Finding(
            area: "card latency",
            status: isGood ? .ok : .warning,
            finding: finding,
            remedy: isGood
                ? nil
                : "Name the hardware itself (plughw:N) in place of a sound server, and allow real-time scheduling; "
                    + "`media-tool loopback --device` measures the whole way."
        )
    }
}
