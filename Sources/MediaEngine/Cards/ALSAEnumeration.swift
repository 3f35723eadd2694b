internal import CALSA
import Glibc

/// The cards that ALSA knows, found without opening any: a busy card keeps its place in the list.
enum ALSAEnumeration {
    /// Hardware first, then the PCMs that ALSA's configuration hints at.
    static func cards() -> [ALSACard] {
        calsa_silence()
        return hardware() + hinted()
    }

    private static func hardware() -> [ALSACard] {
        var indices: [Int] = []
        var index: Int32 = -1
        while snd_card_next(&index) >= 0, index >= 0 { indices.append(Int(index)) }
        let identities = HardwareIdentity.distinct(indices.map { HardwareIdentity(card: $0) })
        var cards: [ALSACard] = []
        for (index, identity) in zip(indices, identities) {
            cards += devices(ofCard: index, identity: identity, name: name(ofCard: Int32(index)), proc: "/proc/asound")
        }
        return cards
    }

    /// The PCM devices of one hardware card: its directories pcm0p, pcm0c, pcm1p and so on below `proc`.
    static func devices(ofCard index: Int, identity: String, name: String, proc: String) -> [ALSACard] {
        let folder = "\(proc)/card\(index)"
        let shortName = SystemFile.read("\(folder)/id") ?? "\(index)"
        var found: [Int: Set<CardDirection>] = [:]
        var isInUse: Set<Int> = []
        for entry in SystemFile.names(in: folder) where entry.hasPrefix("pcm") {
            guard let number = Int(entry.dropFirst(3).dropLast()) else { continue }
            switch entry.last {
            case "p": found[number, default: []].insert(.playback)
            case "c": found[number, default: []].insert(.capture)
            default: continue
            }
            let status = SystemFile.read("\(folder)/\(entry)/sub0/status")
            if let status, status != "closed" { isInUse.insert(number) }
        }
        return found.sorted { $0.key < $1.key }.map { number, directions in
            let suffix = number == 0 ? "" : ",\(number)"
            return ALSACard(
                pcm: "plughw:CARD=\(shortName),DEV=\(number)",
                control: "hw:\(shortName)",
                CardDescription(
                    id: CardID("alsa:\(identity)\(suffix)"),
                    name: number == 0 ? name : "\(name), device \(number)",
                    backend: "alsa",
                    directions: directions,
                    state: isInUse.contains(number) ? .inUse : .available
                )
            )
        }
    }

    private static func name(ofCard index: Int32) -> String {
        var text: UnsafeMutablePointer<CChar>?
        guard snd_card_get_name(index, &text) >= 0, let text else { return "card \(index)" }
        defer { free(text) }
        return String(cString: text)
    }

    private static func hinted() -> [ALSACard] {
        // The configuration may have changed since libasound last read it.
        snd_config_update()
        var hints: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
        guard snd_device_name_hint(-1, "pcm", &hints) >= 0, let hints else { return [] }
        defer { snd_device_name_free_hint(hints) }
        var cards: [ALSACard] = []
        var next = hints
        while let hint = next.pointee {
            next += 1
            // PCMs of hardware cards are listed above, under an identity that lasts.
            guard let pcm = text("NAME", of: hint), !pcm.contains("CARD=") else { continue }
            let directions: Set<CardDirection>
            switch text("IOID", of: hint) {
            case "Input": directions = [.capture]
            case "Output": directions = [.playback]
            default: directions = .duplex
            }
            cards.append(
                ALSACard(
                    pcm: pcm,
                    control: ALSACard.controlName(of: pcm),
                    CardDescription(
                        id: CardID("alsa:\(pcm)"),
                        name: pcm,
                        backend: "alsa",
                        directions: directions
                    )
                )
            )
        }
        return cards
    }

    private static func text(_ key: String, of hint: UnsafeMutableRawPointer) -> String? {
        guard let text = snd_device_name_get_hint(hint, key) else { return nil }
        defer { free(text) }
        return String(cString: text)
    }
}
